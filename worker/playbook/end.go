package playbook

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster/fleet/remote"
)

// An End is how the process of a play ended.
type End struct {
	Exit  int    // 128 + n: signal n ended it
	Words []byte // the last words of ansible-playbook itself
	Cause error  // why the node has killed it; nil: it ended by itself
}

const (
	// exitMissing is the code of a shell for a program that is not there.
	exitMissing = 127
)

// ErrNoAnsible means that the node has no ansible-playbook.
var ErrNoAnsible = errors.New("this node has no ansible-playbook: install ansible-core there")

// A Doubt is the error of a play that reached its host and ended unseen.
type Doubt struct{ Why string }

// Error returns why the end is not known.
func (d *Doubt) Error() string { return d.Why }

// An AwayError is the error of a play that did not reach its host.
type AwayError struct{ Why string }

// Error returns why it did not.
func (e *AwayError) Error() string { return "Ansible could not reach the host: " + e.Why }

// A MistakeError is the error of a play that ran nothing on the host, because the playbook is
// wrong or not for it.
type MistakeError struct{ Why string }

// Error returns the mistake.
func (e *MistakeError) Error() string { return e.Why }

// Ended returns the exit code of a play that ended by itself. The error says why there is none: a
// [Doubt], an [AwayError], a [MistakeError] or ErrNoAnsible. A play that did nothing on its host
// has not succeeded.
func (s Sum) Ended(e End) (exit int, err error) {
	switch {
	case s.Away != "" && s.Reached == 0:
		return -1, &AwayError{s.Away}
	case s.Away != "" && !s.recovered():
		return -1, &Doubt{"Ansible lost the host after " + tasks(s.Reached) + ": " + s.Away}
	case e.Exit == exitMissing && s == (Sum{}):
		return -1, ErrNoAnsible
	case s.Tasks == 0 && s.Reached == 0 && s.Running == "" && e.Exit != 0:
		return -1, &MistakeError{"ansible-playbook ended with exit " + fmt.Sprint(e.Exit) +
			" before any task: " + lastWords(e.Words)}
	case s.Tasks == 0 && s.Reached == 0 && e.Exit == 0:
		return -1, &MistakeError{"the playbook has no task for this host: its groups come from the " +
			"inventory and from groups of the step"}
	case e.Exit == 0 && s.Stats == nil:
		return -1, &Doubt{"ansible-playbook said nothing of its end after " + tasks(s.Reached)}
	case e.Exit > 128 && s.Stats == nil:
		return -1, &Doubt{fmt.Sprintf("signal %d ended ansible-playbook after %s", e.Exit-128,
			tasks(s.Reached))}
	}
	return e.Exit, nil
}

// recovered reports whether the playbook went on after it had lost the host, and ended well.
func (s Sum) recovered() bool { return s.Stats != nil && s.Stats.Unreachable == 0 }

// Began reports whether something may have begun on the host.
func (s Sum) Began() bool { return s.Running != "" }

// Findable reports whether the host can say if something of the last task still runs. Commands that
// came without a module have no name by which they are found.
func (s Sum) Findable() bool {
	name := s.Running[strings.LastIndexByte(s.Running, '.')+1:]
	return !slices.Contains([]string{"raw", "reboot"}, name)
}

func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return fmt.Sprintf("%d tasks", n)
}

// lastWords returns the last mistake that ansible-playbook tells, else its last line.
func lastWords(said []byte) string {
	text := string(said)
	if at := strings.LastIndex(text, "ERROR! "); at >= 0 {
		line, _, _ := strings.Cut(strings.TrimSpace(text[at+len("ERROR! "):]), "\n")
		return remote.Quote([]byte(line), quoteMax)
	}
	return remote.Quote([]byte(lastLine(text)), quoteMax)
}
