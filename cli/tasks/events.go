package tasks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
	"muster/jobs"
)

// NewEvents makes the command events.
func NewEvents() *cobra.Command {
	task := ""
	c := &cobra.Command{
		Use:   "events [TASK]",
		Short: "Follow what happens, until Ctrl-C or the end of a task",
		Long: `events prints what happens from now on, one line an event; with -o json each line is
a JSON object. When the server was away for a while, events continues where it was.
With a task, events ends when the task has ended.`,
		Example: `  muster events
  muster events 0wcy7y2fb2 -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	c.Flags().StringVar(&task, "task", "", "only what concerns the task of this `id` and its jobs")
	cli.CompleteFlagWith(c, "task", complete.Tasks)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := cli.OneOf(&task, args); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		l := listener{Session: s}
		if task != "" {
			id, err := cli.TaskArg(task)
			if err != nil {
				return err
			}
			l.task = id
		}
		return l.follow(ctx)
	})
}

// listener follows events.
type listener struct {
	*cli.Session
	task  jobs.TaskID // empty: events of all tasks
	last  string      // id of the last one
	ended []string    // zones in which the task has ended
	lost  bool        // Redis has forgotten the task, so its end will never come
}

// errTaskEnded ends the stream of a task.
var errTaskEnded = errors.New("the task has ended")

// silentMax bounds the silence of a stream: a live server sends a line every 15 s.
const silentMax = time.Minute

// follow prints events until ctx is done, the task has ended, the server refuses, or it stays away
// for too long.
func (l *listener) follow(ctx context.Context) error {
	err := persist(ctx, l.Session, "events", func() (bool, error) { return l.stream(ctx) })
	if errors.Is(err, errTaskEnded) {
		if l.lost {
			l.Say("Redis forgot task %s before it ended", l.task)
			return nil
		}
		l.Say("task %s has ended", l.task)
		return nil
	}
	return err
}

// stream prints one stream of events and notes the id of the last one.
func (l *listener) stream(ctx context.Context) (fresh bool, err error) {
	q := url.Values{}
	if l.task != "" {
		q.Set("task", string(l.task))
	}
	return readStream(ctx, l.Session.Client, cli.Call{Path: "/v1/events", Query: q, Last: l.last},
		func(e event) error {
			err := showEvent(l.Session, e)
			if err == nil {
				err = l.end(ctx, e)
			}
			if e.id != "" {
				l.last = e.id
			}
			return err
		})
}

// persist reads a stream repeatedly, until read returns a permanent error, ctx is done, or the
// server stays away for too long. what names the content of the stream.
func persist(ctx context.Context, s *cli.Session, what string,
	read func() (fresh bool, err error)) error {
	for {
		_, err := cli.Again(ctx, s.Patience, func() (struct{}, error) {
			fresh, err := read()
			if fresh && cli.Passing(err) {
				err = nil // it worked for a while, so the patience begins again
			}
			return struct{}{}, err
		}, func(err error, _ time.Duration) { s.Say("%s", cli.TroubleWords(err)) })
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		s.Say("the stream of %s ended, connecting again", what)
		if !cli.Sleep(ctx, s.Patience.First) {
			return ctx.Err()
		}
	}
}

// readStream passes the events of one stream to f, until the stream breaks off or f returns an
// error. Such an error is permanent: the data cannot be used, or the end is reached. fresh reports
// whether the stream had any data before it broke off.
func readStream(ctx context.Context, c *cli.Client, q cli.Call, f func(event) error) (
	fresh bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	guard := time.AfterFunc(silentMax, cancel)
	defer guard.Stop()

	q.Method, q.Bound = http.MethodGet, silentMax
	r, err := c.Send(ctx, q)
	if err != nil {
		return false, err
	}
	defer r.Body.Close()
	if t := cli.MediaType(r); t != "text/event-stream" {
		return false, c.Nonsense(fmt.Sprintf("it answers with %q, not with events", t))
	}
	var over error
	err = readEvents(r.Body, func(e event) error {
		guard.Reset(silentMax)
		fresh = true
		over = f(e)
		return over
	})
	if over != nil {
		return false, backoff.Permanent(over)
	}
	return fresh, &cli.AwayError{Place: c.Place, Err: fmt.Errorf("the stream ended: %w", err),
		Heard: true}
}

// end returns errTaskEnded if no more events of the task will come. An event of its end belongs to
// one zone; the others may have more events. If the task had ended before the first look, or its
// last event was lost, end finds that out when the server sends only signs of life. Without an
// answer it concludes nothing.
func (l *listener) end(ctx context.Context, e event) error {
	silence := e.comment == "alive" || e.comment == "muster" && l.last == ""
	zone, ends := l.endOf(e)
	if ends {
		l.ended = append(l.ended, zone)
	}
	if l.task == "" || !silence && !ends {
		return nil
	}
	t, err := l.Session.Task(ctx, l.task, 0, 0)
	var no *cli.Refusal
	switch {
	case errors.As(err, &no) && no.Status < http.StatusInternalServerError:
		return err
	case err != nil || t.State != jobs.TaskEnded && !t.Forgotten:
		return nil
	}
	l.lost = t.Forgotten
	for _, zone := range t.Zones {
		if !silence && !slices.Contains(l.ended, zone) {
			return nil
		}
	}
	return errTaskEnded
}

// endOf reports whether an event is the end of the task in a zone.
func (l *listener) endOf(e event) (zone string, ends bool) {
	var h jobs.Happening
	if l.task == "" || json.Unmarshal([]byte(e.data), &h) != nil {
		return "", false
	}
	return h.Zone, h.Event == "task" && h.Object == string(l.task)
}

// showEvent prints an event. A comment matters only if it reports trouble.
func showEvent(s *cli.Session, e event) error {
	if trouble, ok := strings.CutPrefix(e.comment, "trouble: "); ok {
		s.Say("%s", cli.Cell(trouble))
	}
	if e.data == "" {
		return nil
	}
	if s.JSON {
		var line bytes.Buffer
		if err := json.Compact(&line, []byte(e.data)); err != nil {
			return s.Nonsense("an event is no JSON: " + err.Error())
		}
		return s.Write(cli.EscapeJSON(line.Bytes()) + "\n")
	}
	var h jobs.Happening
	if err := json.Unmarshal([]byte(e.data), &h); err != nil {
		return s.Nonsense("an event cannot be read: " + err.Error())
	}
	return s.Write(watch.EventLine(h))
}

// event is a block of a stream: data with its id and name, or a comment.
type event struct{ id, name, data, comment string }

// eventMax bounds a line and the data of an event.
const eventMax = 1 << 20 // bytes

// readEvents reads server-sent events until the stream or f ends. Its error is never nil: io.EOF
// means that the stream ended between two events.
func readEvents(r io.Reader, f func(event) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, eventMax)
	var b block
	for lines.Scan() {
		if line := lines.Text(); line != "" {
			b.add(line)
			if len(b.data) > eventMax {
				return errors.New("an event is too long")
			}
			continue
		}
		e, ok := b.event()
		b = block{}
		if !ok {
			continue
		}
		if err := f(e); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if _, ok := b.event(); ok {
		return io.ErrUnexpectedEOF
	}
	return io.EOF
}

// block collects the lines of an event.
type block struct {
	id, name, comment string
	data              []byte
}

func (b *block) add(line string) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "":
		b.comment = value
	case "id":
		b.id = value
	case "event":
		b.name = value
	case "data":
		b.data = append(append(b.data, value...), '\n')
	}
}

// event returns the event of the lines; none if there is only an id.
func (b *block) event() (event, bool) {
	e := event{id: b.id, name: b.name, comment: b.comment,
		data: strings.TrimSuffix(string(b.data), "\n")}
	return e, e.data != "" || e.comment != ""
}
