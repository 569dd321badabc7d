package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/trial"
	"muster/scripts"
	"muster/worker/playbook"
)

// stage is the pretended host, and what came to it.
type stage struct {
	answers map[string][]Answer
	given   map[string]int // answers so far, by step
	step    string         // in hand
	kind    scripts.Kind
	boot    int    // its boot id
	told    bool   // it was told to reboot in this boot
	toldIn  string // by which step
	steps   []string
	ran     map[string]string // the last text of each step
}

// next is the answer to the step in hand.
func (s *stage) next() Answer {
	list := s.answers[s.step]
	if len(list) == 0 {
		return Answer{}
	}
	i := min(s.given[s.step], len(list)-1)
	s.given[s.step]++
	return list[i]
}

// away reports whether the next answer is that the host does not respond.
func (s *stage) away() bool {
	list := s.answers[s.step]
	return len(list) > 0 && list[min(s.given[s.step], len(list)-1)].Unreachable
}

// came notes that the step in hand has come to the host.
func (s *stage) came(text string) {
	if n := len(s.steps); n == 0 || s.steps[n-1] != s.step {
		s.steps = append(s.steps, s.step)
	}
	s.ran[s.step] = text
}

var errAway = errors.New("the case says that it is unreachable")

func (s *stage) fault(op string, kind remote.Kind, sent bool) error {
	return &remote.Error{Op: op, Host: hostName, Addr: hostAddress, Kind: kind, Sent: sent,
		Err: errAway}
}

// dial connects with it.
func (s *stage) dial(context.Context, fleet.Host) (*conn, error) {
	if s.away() {
		s.next()
		return nil, s.fault("connect", remote.KindUnreachable, false)
	}
	return &conn{s}, nil
}

// conn is a connection to it.
type conn struct{ *stage }

// Close ends it.
func (*conn) Close() error { return nil }

// Mark is never asked for: the host is in no group.
func (*conn) Mark(context.Context, remote.Marker) (remote.Marking, error) {
	return remote.Marking{}, errors.New("a pretended host is in no group")
}

// Upload takes a file.
func (c *conn) Upload(_ context.Context, u remote.Upload) error {
	c.came("upload to " + u.Path)
	if _, err := io.Copy(io.Discard, u.Content); err != nil {
		return err
	}
	switch a := c.next(); {
	case a.Unreachable:
		return c.fault("upload", remote.KindLost, true)
	case a.Exit != 0:
		return &remote.Error{Op: "upload", Host: hostName, Addr: hostAddress, Kind: remote.KindFailed,
			Sent: true, Err: errors.New(a.Output)}
	}
	return nil
}

// plays answers a playbook as the case says.
func (s *stage) plays(_ context.Context, b playbook.Play) (remote.Result, bool, error) {
	s.came("playbook " + b.File)
	a := s.next()
	if a.Unreachable {
		return remote.Result{ExitCode: -1}, false, s.fault("ansible", remote.KindLost, true)
	}
	return said(a.Output, a.Exit), false, nil
}

const askBoot = "cat /proc/sys/kernel/random/boot_id"

// Run answers a command as the case says.
func (c *conn) Run(_ context.Context, cmd remote.Command) (remote.Result, error) {
	switch {
	case c.kind == scripts.KindReboot && cmd.Shell == askBoot:
		if c.told {
			c.boot, c.told = c.boot+1, false
		}
		return said(fmt.Sprintf("%08d-0000-0000-0000-000000000000\n", c.boot), 0), nil
	case c.kind == scripts.KindReboot && !c.rebooted():
		c.came(cmd.Shell)
		c.told, c.toldIn = true, c.step
		return said("", 0), nil
	case c.kind == scripts.KindConfirm:
		return c.confirms(cmd.Shell)
	}
	c.came(cmd.Shell)
	a := c.next()
	if a.Unreachable {
		return remote.Result{ExitCode: -1}, c.fault("run", remote.KindLost, true)
	}
	return said(a.Output, a.Exit), nil
}

// rebooted reports whether the host has booted since it was told to reboot.
func (s *stage) rebooted() bool { return s.toldIn == s.step && !s.told }

func said(text string, code int) remote.Result {
	return remote.Result{ExitCode: code, Output: remote.Output{Head: []byte(text)}}
}

// confirms plays a change that is made and proven: the answer is that of the proof.
func (c *conn) confirms(text string) (remote.Result, error) {
	state := func(before, words string) (remote.Result, error) {
		if before != "" && !strings.HasSuffix(before, "\n") {
			before += "\n"
		}
		return said(before+trial.Mark+words+"\n", 0), nil
	}
	for _, verb := range []string{"prove", "confirm", "back", "state"} {
		if !strings.Contains(text, "\nverb="+verb+"\n") || strings.Contains(text, "\nverb=arm\n") {
			continue
		}
		switch verb {
		case "prove", "state":
			a := c.next()
			if a.Unreachable {
				return remote.Result{ExitCode: -1}, c.fault("run", remote.KindLost, true)
			}
			return state(a.Output, fmt.Sprintf("proof %d 60", a.Exit))
		case "confirm":
			return state("", "confirmed 0")
		}
		return state("", "rolledback 0 refused")
	}
	c.came(text)
	return state("", "armed 60")
}
