package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/fleet/remote"
	"muster/jobs"
)

// tail reads the output of all hosts of a task. A stream that begins again may repeat a part, which
// is left out by its position.
type tail struct {
	*cli.Session
	task   jobs.TaskID
	follow bool
	out    logPrinter
	last   string // id of the last event
	at     map[jobs.ID]int64
	ended  map[jobs.ID]bool
}

// logPrinter shows output of hosts.
type logPrinter interface {
	// said shows a piece; so many bytes before it are missing.
	said(p api.Said, missing int64) error
	// ended shows the end of a job, after all output of its host.
	ended(e api.JobEnd) error
	// close shows what is left at the end.
	close() error
}

// errOver ends a stream that has come to its end.
var errOver = errors.New("nothing more will come")

// tailTask prints the output of the hosts of a task, and with -f also new output until the task has
// ended.
func tailTask(ctx context.Context, s *cli.Session, f logFlags, id jobs.TaskID) error {
	t := &tail{Session: s, task: id, follow: f.follow, at: map[jobs.ID]int64{},
		ended: map[jobs.ID]bool{}}
	if s.JSON {
		t.out = jsonLog{s}
	} else {
		t.out = &lineLog{Session: s, raw: f.raw, open: map[string][]byte{}}
	}
	err := persist(ctx, s, "output", func() (bool, error) { return t.stream(ctx) })
	if errors.Is(err, errOver) {
		err = nil
	}
	return errors.Join(err, t.out.close())
}

func (t *tail) stream(ctx context.Context) (bool, error) {
	q := url.Values{"follow": {strconv.FormatBool(t.follow)}}
	path := "/v1/tasks/" + url.PathEscape(string(t.task)) + "/output"
	return readStream(ctx, t.Session.Client, cli.Call{Path: path, Query: q, Last: t.last},
		func(e event) error {
			if e.id != "" {
				t.last = e.id
			}
			return t.hear(e)
		})
}

// hear shows the new part of an event.
func (t *tail) hear(e event) error {
	switch e.name {
	case api.EventSaid:
		var p api.Said
		if err := readEvent(t.Session.Client, e, &p); err != nil {
			return err
		}
		at := t.at[p.Job]
		missing := max(p.At-at, 0)
		if over := at - p.At; over > 0 {
			p.At, p.Data = at, p.Data[min(over, int64(len(p.Data))):]
		}
		if len(p.Data) == 0 {
			return nil
		}
		t.at[p.Job] = p.At + int64(len(p.Data))
		return t.out.said(p, missing)
	case api.EventEnded:
		var end api.JobEnd
		if err := readEvent(t.Session.Client, e, &end); err != nil || t.ended[end.Job] {
			return err
		}
		t.ended[end.Job] = true
		return t.out.ended(end)
	case api.EventOver:
		var task jobs.TaskInfo
		if err := readEvent(t.Session.Client, e, &task); err != nil {
			return err
		}
		switch {
		case t.JSON:
		case task.State != jobs.TaskEnded:
			t.Say("task %[1]s has not ended: `muster logs -f %[1]s` follows it", t.task)
		case len(t.at) == 0:
			t.Say("no host of task %s has said anything", t.task)
		}
		return errOver
	}
	return showTrouble(t.Session.Screen, e)
}

// readEvent reads the data of an event.
func readEvent(c *cli.Client, e event, into any) error {
	if err := json.Unmarshal([]byte(e.data), into); err != nil {
		return c.Nonsense("an event cannot be read: " + err.Error())
	}
	return nil
}

// showTrouble shows a comment about trouble of the server.
func showTrouble(s *cli.Screen, e event) error {
	if trouble, ok := strings.CutPrefix(e.comment, "trouble: "); ok {
		s.Say("%s", cli.Cell(trouble))
	}
	return nil
}

// jsonLog prints pieces and ends, a line of JSON each.
type jsonLog struct{ *cli.Session }

func (l jsonLog) said(p api.Said, _ int64) error { return l.line(p) }

func (l jsonLog) ended(e api.JobEnd) error { return l.line(e) }

func (l jsonLog) close() error { return nil }

func (l jsonLog) line(v any) error {
	text, err := cli.Encode(v, "")
	if err != nil {
		return err
	}
	return l.Write(text)
}

// openMax bounds the held back part of a line without end, in bytes.
const openMax = 4 << 10

// lineLog prints lines, each behind its host. It prints only whole lines, because output of many
// hosts arrives at the same time.
type lineLog struct {
	*cli.Session
	raw  bool
	open map[string][]byte // by host, the line that has not ended
}

func (l *lineLog) said(p api.Said, missing int64) error {
	var b bytes.Buffer
	rest := append(l.open[p.Host], p.Data...)
	if missing > 0 {
		if len(l.open[p.Host]) > 0 {
			l.line(&b, p.Host, l.open[p.Host])
		}
		fmt.Fprintf(&b, "%s%s\n", l.prefix(p.Host), l.Colours.Paint(cli.Dim, remote.LeftOut(missing)))
		rest = p.Data
	}
	for {
		n := bytes.IndexByte(rest, '\n')
		if n < 0 && len(rest) < openMax {
			break
		}
		if n < 0 {
			n = openMax - remote.Unfinished(rest[:openMax])
			l.line(&b, p.Host, rest[:n])
			rest = rest[n:]
			continue
		}
		l.line(&b, p.Host, rest[:n])
		rest = rest[n+1:]
	}
	if len(rest) > 0 {
		l.open[p.Host] = slices.Clone(rest)
	} else {
		delete(l.open, p.Host)
	}
	return l.Write(b.String())
}

func (l *lineLog) prefix(host string) string { return hostPrefix(l.Colours, host) }

func hostPrefix(colours cli.Palette, host string) string {
	return colours.Host(host, cli.Cell(host)+":") + " "
}

// line writes one line without its end.
func (l *lineLog) line(b *bytes.Buffer, host string, text []byte) {
	b.WriteString(l.prefix(host))
	if l.raw {
		b.Write(text)
	} else {
		b.WriteString(remote.Printable(bytes.TrimSuffix(text, []byte("\r"))))
	}
	b.WriteByte('\n')
}

// ended reports, on standard error, the end of a job that did not succeed.
func (l *lineLog) ended(e api.JobEnd) error {
	if err := l.flush(e.Host); err != nil || e.Outcome == jobs.Succeeded {
		return err
	}
	words := string(e.Outcome)
	if e.ExitCode != nil && *e.ExitCode != 0 {
		words += fmt.Sprintf(", exit code %d", *e.ExitCode)
	}
	if e.Error != "" {
		words += ": " + e.Error
	}
	colours := l.Colours && cli.Palette(l.ErrTerm)
	l.Say("%s%s", hostPrefix(colours, e.Host), colours.Outcome(e.Outcome, cli.Cell(words)))
	return nil
}

func (l *lineLog) flush(host string) error {
	text := l.open[host]
	if len(text) == 0 {
		return nil
	}
	delete(l.open, host)
	var b bytes.Buffer
	l.line(&b, host, text)
	return l.Write(b.String())
}

func (l *lineLog) close() error {
	for _, host := range slices.Sorted(maps.Keys(l.open)) {
		if err := l.flush(host); err != nil {
			return err
		}
	}
	return nil
}
