package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// markTime bounds the part of Config.Stop in which the host must report its process id.
const markTime = time.Second

// stopScript ends the process group of a command and reports the result. Its arguments are
// the two processes of a mark, and a file to remove or "".
//
// The group is that of timeout(1), which creates its own. The timeout of busybox creates none,
// so there it is the group of the login shell. If neither process of the mark leads the group,
// or this script belongs to it, other processes than the command's are in it.
//
// The script sends TERM once to each process except the second of the mark. That is either
// timeout(1), which would pass the signal on, so that a trap would run twice and be killed
// while it cleans up, or the login shell, which only waits. After two seconds the whole group
// gets KILL.
//
// kill -0 is not sufficient to judge a group: it finds zombies, and it does not reach
// processes of another user, as under sudo. Then the list of processes decides. It comes from
// ps, which is fast, or from /proc where ps is too simple.
const stopScript = `: muster-stop
LC_ALL=C; export LC_ALL
ps='ps -A -o pid= -o pgid= -o stat='
$ps >/dev/null 2>&1 || ps=
list() {
	if [ -n "$ps" ]; then
		$ps
	else
		for f in /proc/[0-9]*/stat; do
			if read -r line < "$f"; then
				set -- "${line%% *}" ${line##*) }
				echo "$1 $4 $2"
			fi
		done 2>/dev/null
	fi
}
group() {
	list | while read -r pid pgid stat; do if [ "$pid" = "$1" ]; then echo "$pgid"; fi; done
}
living() {
	list | while read -r pid pgid stat; do
		case $pgid/$stat in "$g"/[ZX]*) ;; "$g"/*) echo "$pid" ;; esac
	done
}
alive() {
	case $(kill -0 "-$g" 2>&1) in '' | *ermitted*) [ -n "$(living)" ] ;; *) false ;; esac
}

g=$(group "$1")
case $g in
'') echo ended; exit ;;
"$(group $$)") echo shared; exit ;;
"$1" | "$2") ;;
*) echo shared; exit ;;
esac

soft='.05 .1 .2 .4 .4 .4 .5' hard='.05 .1 .3 .5'
sleep .01 2>/dev/null || { soft='1 1' hard=1; }
told=
for pid in $(living); do if [ "$pid" != "$2" ]; then told="$told $pid"; fi; done
if [ -n "$told" ]; then kill -TERM $told 2>/dev/null; fi
for pause in $soft; do if alive; then sleep "$pause"; fi; done
if alive; then
	kill -KILL "-$g" 2>/dev/null
	for pause in $hard; do if alive; then sleep "$pause"; fi; done
fi
left=$(living)
if [ -n "$left" ]; then echo left $left; exit; fi
case $(kill -0 "-$g" 2>&1) in *ermitted*) echo hidden; exit ;; esac
if [ -n "$3" ]; then rm -f "$3"; fi
echo gone
`

var errNotStarted = errors.New("stopped before it was started")

// An obedience makes sure that a command to be stopped delays nobody: if it was not sent yet,
// the connection is closed at once, otherwise after Config.Stop.
type obedience struct {
	stop <-chan struct{}
	runs bool // it may run already, and must be found first
	sent chan struct{}
	over chan struct{}
	wait sync.WaitGroup
}

// obey starts to watch stop. It returns nil if stop is nil.
func (c *Conn) obey(stop <-chan struct{}, runs bool) *obedience {
	if stop == nil {
		return nil
	}
	o := &obedience{stop: stop, runs: runs, sent: make(chan struct{}), over: make(chan struct{})}
	o.wait.Go(func() { o.watch(c) })
	return o
}

func (o *obedience) watch(c *Conn) {
	select {
	case <-o.over:
		return
	case <-o.stop:
	}
	if !isClosed(o.sent) && !o.runs {
		c.fail(errNotStarted)
		return
	}
	limit := time.NewTimer(c.cfg.Stop)
	defer limit.Stop()

	select {
	case <-o.over:
	case <-limit.C:
		c.fail(c.stopTooLate())
	}
}

// stopTooLate returns the error for a host that did not answer a stop in time.
func (c *Conn) stopTooLate() error {
	return fmt.Errorf("the host did not answer that within %s", c.cfg.Stop)
}

// tooLate reports whether the command must not be sent any more. If it returns false, watch no
// longer closes the connection at once: either watch sees sent before it checks stop, or
// tooLate sees stop here.
func (o *obedience) tooLate() bool {
	if o == nil || o.runs {
		return false
	}
	if !isClosed(o.sent) {
		close(o.sent)
	}
	return isClosed(o.stop)
}

func (o *obedience) end() {
	if o != nil {
		close(o.over)
		o.wait.Wait()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// halt stops the command on the host. It returns nil if the command ended by itself before;
// then that end counts.
func (s *session) halt(ctx context.Context, op string, cmd Command) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.conn.cfg.Stop, s.conn.stopTooLate())
	defer cancel()

	if s.notes != nil {
		if done, err := s.haltRecorded(ctx, op, cmd); done {
			return err
		}
	}
	m, err := s.marked()
	if s.hasEnded() {
		return nil
	}
	if err != nil {
		return s.doubt(op, err)
	}
	said, err := s.conn.askToStop(ctx, Command{
		Shell: fmt.Sprintf("set -- %d %d %s\n%s", m.shell, m.parent, quote(cmd.litter), stopScript),
		Bound: s.conn.cfg.Stop,
	})
	if said.word == "gone" || said.word == "ended" {
		wait(s.ended, s.conn.cfg.Drain) // the end is on its way
	}
	switch {
	case said.spared(err) && s.hasEnded() && s.known:
		return nil
	case err != nil:
		return s.doubt(op, err)
	}
	return s.judge(op, said)
}

// judge turns the answer of the script into an error.
func (s *session) judge(op string, said stopped) error {
	to := s.conn.to
	switch said.word {
	case "gone":
		return to.faultSent(op, KindStopped, errStopped)
	case "left":
		return to.faultSent(op, KindRunning, fmt.Errorf("it ended neither on TERM nor on KILL: "+
			"process %s", said.processes()))
	case "hidden":
		return to.faultSent(op, KindRunning, errors.New("a process of it belongs to another user and "+
			"cannot be stopped by this one"))
	case "shared":
		return s.doubt(op, errors.New("the host gave it no process group of its own"))
	}
	return s.doubt(op, errors.New("the host says that it ended, and not how"))
}

// marked waits for the mark, or for the end of the session without a mark.
func (s *session) marked() (mark, error) {
	limit := time.NewTimer(markTime)
	defer limit.Stop()

	select {
	case <-s.mark.found:
		return s.mark.mark, nil
	case <-s.ended:
		return mark{}, nil
	case <-limit.C:
		return mark{}, errors.New("the host did not say which process it is")
	}
}

// doubt returns the error for a command that may still run.
func (s *session) doubt(op string, why error) error {
	var e *Error
	if errors.As(why, &e) {
		why = e.Err
	}
	if cause := s.conn.why(); cause != nil {
		why = cause
	}
	return s.conn.to.faultSent(op, KindLost,
		&doubtError{Cause(why), "told to stop, and it is not known whether it did: ", ""})
}

// wait waits until c is closed, but at most limit.
func wait(c <-chan struct{}, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()

	select {
	case <-c:
	case <-timer.C:
	}
}

// askToStop runs the script on the host in another session, or on another connection if the
// host allows only one session on each.
func (c *Conn) askToStop(ctx context.Context, command Command) (stopped, error) {
	result, err := c.run(ctx, "stop", command)
	if kind := KindOf(err); kind == KindThrottled || kind == KindRefused {
		var other *Conn
		if other, err = c.again(ctx); err != nil {
			return stopped{}, err
		}
		defer other.Close()
		result, err = other.run(ctx, "stop", command)
	}
	if err != nil {
		return stopped{}, err
	}
	said, ok := parseStopped(result.Output.Bytes())
	if !ok {
		return stopped{}, fmt.Errorf("it answered with exit %d; %s", result.ExitCode,
			hostSaid(lastOf(result.Output.Bytes())))
	}
	return said, nil
}

// stopped is the last line of the script.
type stopped struct {
	word string // gone, left, hidden, shared, ended; from record.sh also none, unsure
	left []string
}

// spared reports whether the script sent no signal; err is the error of running it.
func (s stopped) spared(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return !e.Sent
	}
	return err == nil && (s.word == "ended" || s.word == "shared")
}

// parseStopped reads the last line of the script's output. A login shell may have written
// something before it.
func parseStopped(output []byte) (stopped, bool) {
	words := strings.Fields(string(lastOf(output)))
	if len(words) == 0 {
		return stopped{}, false
	}
	s := stopped{word: words[0], left: words[1:]}
	for _, p := range s.left {
		if processID(p) == 0 {
			return stopped{}, false
		}
	}
	switch s.word {
	case "left":
		return s, len(s.left) > 0
	case "gone", "hidden", "shared", "ended", "none", "unsure":
		return s, len(s.left) == 0
	}
	return stopped{}, false
}

// lastOf returns the last line that is not empty.
func lastOf(output []byte) []byte {
	output = bytes.TrimSpace(output)
	return output[bytes.LastIndexByte(output, '\n')+1:]
}

// processes lists some of the remaining processes.
func (s stopped) processes() string {
	const most = 5
	if len(s.left) <= most {
		return strings.Join(s.left, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(s.left[:most], ", "), len(s.left)-most)
}
