package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"muster/fleet"
)

// Record makes a command a step of a job of which the host itself keeps a record, if its
// fence allows it: a file that says that the step began, and later how it ended. By that
// the host refuses a second start, and an attempt that was overtaken; and the step goes on
// without us. See record.sh.
type Record struct {
	Job   string // a step is named by its job and its number
	Step  int
	Token int64 // of this attempt: the host refuses what is older than it has seen
	Since int64 // no attempt at the job has an older token

	// Again says that an earlier attempt may have started the step. Then it is started only
	// if the host can show that it never was: else the error is of KindUntold.
	Again bool

	// Twice says that the step may run again where it is not known how it went before.
	Twice bool

	// Marked says that the job has marked its redundancy group, see Marker. Where another job
	// has done so since, the step is not started: that is KindStale, too.
	Marked bool

	// Look starts nothing: a step that never began is KindNever, and no older attempt can
	// start it any more.
	Look bool

	// Glance looks and does not wait: a step that is at work is KindWork. Peek does so and
	// writes nothing on the host: an older attempt can start what never began. Both go with Look.
	Glance, Peek bool
}

//go:embed record.sh
var recordText string

//go:embed put.sh
var putText string

// What is sent of them. Nothing is done before the last line.
var (
	recordScript = withoutComments(recordText)
	putScript    = strings.TrimSuffix(recordScript, mainLine) + withoutComments(putText) + mainLine
)

const mainLine = "main\n"

// recordLine runs what comes on stdin, by a shell that is not the login shell. It takes any
// login shell: that of csh, of fish, a restricted one.
const recordLine = `sh -c ': muster-record; IFS= read -r record; eval "$record"'`

// recordDirDefault is where hosts keep records, unless Config says otherwise.
const recordDirDefault = "/var/lib/muster"

// withoutComments leaves out what no shell needs.
func withoutComments(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimLeft(line, "\t")
		if line != "\n" && !strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// The words for what record.sh is to do.
const (
	verbRun  = "run"
	verbPut  = "put"
	verbAsk  = "ask"
	verbLook = "look"
	verbPeek = "peek"
	verbStop = "stop"
)

// A request is what record.sh is told.
type request struct {
	verb  string
	fence fleet.Fence
	dir   string
	cmd   Command
}

// reader is what goes to stdin: the script, the request, the command's own stdin.
func (q request) reader(nonce string) io.Reader {
	r := q.cmd.Record
	text := q.cmd.Shell
	if text[0] == '-' || text[0] == '+' {
		text = " " + text // else sh takes it for its options
	}
	var b strings.Builder
	b.WriteString("nonce=" + nonce + "; IFS= read -r request; IFS= read -r place; IFS= read -r job; " +
		"IFS= read -r text; record=$(" + q.loader() + "); eval \"$record\"\n")
	fmt.Fprintf(&b, "%s %s %s %d %s %s %s %s %d %s\n", q.verb, q.fence, r.key(), r.Step,
		halves(r.Token), halves(r.Since), bit(r.Again), bit(r.Twice), seconds(q.cmd.Bound),
		bit(r.Marked))
	fmt.Fprintf(&b, "%s\n%s\n%s\n", q.dir, r.Job, escape(text))
	if q.verb == verbPut {
		b.WriteString(putScript)
	} else {
		b.WriteString(recordScript)
	}
	if q.cmd.Stdin == nil {
		return strings.NewReader(b.String())
	}
	b.WriteString(nonce + "\n")
	return io.MultiReader(strings.NewReader(b.String()), q.cmd.Stdin)
}

// loader reads the request. Where the command has an input of its own nothing of that may
// be read, so it goes byte by byte; that costs 4 ms.
func (q request) loader() string {
	if q.cmd.Stdin == nil {
		return "cat"
	}
	return `while IFS= read -r l && [ "$l" != "$nonce" ]; do printf '%s\n' "$l"; done`
}

// check tells what is wrong with a command that has a record.
func (r *Record) check(cmd Command) error {
	switch {
	case r.Job == "" || strings.IndexFunc(r.Job, notInJob) >= 0:
		return fmt.Errorf("job %q: a name without blanks", r.Job)
	case r.Step < 0 || r.Step > 1e6:
		return fmt.Errorf("step %d: 0 to 1000000", r.Step)
	case r.Token <= 0 || r.Token >= 1e18 || r.Since < 0 || r.Since >= 1e18:
		return fmt.Errorf("token %d since %d: more than 0 and less than 10^18", r.Token, r.Since)
	case len(cmd.Shell) > lineMax:
		return fmt.Errorf("the command has %d bytes, the most is %d: upload it as a file or send "+
			"it on stdin", len(cmd.Shell), lineMax)
	}
	return nil
}

func notInJob(r rune) bool { return r <= ' ' || r > '~' }

// key names the job in the names of files, whatever is in its own.
func (r *Record) key() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(r.Job)))[:20] }

// halves writes a token as two numbers of nine digits.
func halves(token int64) string { return fmt.Sprintf("%09d %09d", token/1e9, token%1e9) }

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// verb is what a host is asked for by Run; empty: to run the command, without a record.
func (c *Conn) verb(cmd Command) string {
	switch r := cmd.Record; {
	case cmd.verb != "":
		return cmd.verb
	case r == nil || c.keeper.fence == fleet.FenceNone || c.keeper.fence == "":
		return ""
	case r.Look && r.Peek:
		return verbPeek
	case r.Look && r.Glance:
		return verbLook
	case r.Look:
		return verbAsk
	}
	return verbRun
}

// cannotTell is about a command that may have been started, on a host without records.
func (c *Conn) cannotTell(op string, cmd Command) error {
	r := cmd.Record
	if r == nil || !r.Look && (!r.Again || r.Twice) || c.verb(cmd) != "" {
		return nil
	}
	return c.to.fault(op, KindUntold, errors.New("it keeps no record of what was started "+
		"(fence: none)"))
}

// attach asks once more, over a new connection, what became of a step whose connection was
// lost. It returns what is known by then: at worst the first end.
func (c *Conn) attach(ctx context.Context, cmd Command, lost Result, why error) (Result, error) {
	var e *Error
	if !errors.As(why, &e) || e.Kind != KindLost || c.verb(cmd) == "" || lost.Unfenced != "" ||
		cmd.Stdin != nil || ctx.Err() != nil || isClosed(cmd.Stop) {
		return lost, why
	}
	other, err := c.again(ctx)
	if err != nil {
		return lost, why
	}
	defer other.Close()
	again := *cmd.Record
	again.Again = true
	cmd.Record, cmd.Attached, cmd.Began = &again, nil, nil
	if cmd.Live != nil {
		cmd.Live = &later{to: cmd.Live, known: lost.Output.Size()}
	}
	result, err := other.run(ctx, "run", cmd)
	if errors.As(err, &e) && !e.Sent {
		return lost, why // it is known as well as before
	}
	result.Took += lost.Took
	result.Attached = lost.Attached // it is what this very attempt began
	return result, err
}

// later passes on what comes behind the bytes that are known.
type later struct {
	to    io.Writer
	known int64
}

// Write passes p on, or what of it is new.
func (l *later) Write(p []byte) (int, error) {
	known := min(l.known, int64(len(p)))
	l.known -= known
	if rest := p[known:]; len(rest) > 0 {
		_, _ = l.to.Write(rest) // what it makes of it is its own business
	}
	return len(p), nil
}

// Skip notes what is lost: some of it may be what is known.
func (l *later) Skip(n int64) {
	known := min(l.known, n)
	l.known -= known
	if to, ok := l.to.(Skipper); ok && n > known {
		to.Skip(n - known)
	}
}

// recorded makes a result of what record.sh said. plain means that there was no record to
// be kept, or that the end was not seen: then the end of the session decides.
func (s *session) recorded(op string, cmd Command, halted error, result Result) (
	r Result, plain bool, err error,
) {
	n, to := s.notes, s.conn.to
	greeted, fenced := n.state()
	if greeted && !fenced {
		result.Unfenced = s.conn.lacks(n.lack)
	}
	if !isClosed(n.over) {
		if !greeted && s.hasEnded() && s.known {
			return result, false, to.faultSent(op, KindMute, fmt.Errorf("it did not answer as a POSIX "+
				"shell does, so it is not known what it made of the command; if it has none, set "+
				"fence: none; %s", lastWords(result.Output)))
		}
		return result, true, nil
	}
	result.Attached, result.Lost = n.attached, whyLost(n.lost)
	switch n.last.word() {
	case "no":
		return result, false, n.last.refusal(op, s.conn)
	case "stopped":
		result.Output = Output{Head: []byte(strings.Join(n.last[1:], " "))}
		return result, false, nil
	}
	end, ok := parseEnd(n.last[1:])
	if !ok {
		return result, false, to.faultSent(op, KindGone, &doubtError{errors.New(n.last.lastSeen()),
			"the step began, nothing of it is alive, and it is not known how it ended: ", ""})
	}
	result.ExitCode, result.Open = end.code, end.open
	return result, false, end.fault(s, op, cmd, halted)
}

// fault is what was wrong with a step that ended.
func (e end) fault(s *session, op string, cmd Command, halted error) error {
	to := s.conn.to
	switch {
	case KindOf(halted) == KindRunning:
		return halted
	case len(e.left) > 0:
		return to.faultSent(op, KindRunning, fmt.Errorf("it ran over its bound of %s, and did not end "+
			"when it was killed: process %s", cmd.Bound, stopped{left: e.left}.processes()))
	case e.how == "timeout":
		return to.faultSent(op, KindTimeout, overBound(cmd.Bound))
	case e.how == "stopped":
		return to.faultSent(op, KindStopped, errStopped)
	}
	return nil
}

// abandoned tells that record.sh itself vanished: the step goes on without it.
func (s *session) abandoned() bool {
	if s.notes == nil || isClosed(s.notes.over) || isClosed(s.mark.found) {
		return false
	}
	_, fenced := s.notes.state()
	return fenced
}

// noted is closed when record.sh has said how it ended; nil: it was not asked.
func (s *session) noted() <-chan struct{} {
	if s.notes == nil {
		return nil
	}
	return s.notes.over
}

// mayRun tells that a command is asked about that may run already: to stop it, it must be
// found first.
func (cmd Command) mayRun() bool {
	return cmd.Record != nil && cmd.Record.Again && cmd.verb != verbPut
}

// looks tells that nothing is started in any case.
func (cmd Command) looks() bool { return cmd.Record != nil && cmd.Record.Look }

var errStopped = errors.New("the command was stopped on the host")

func (n note) lastSeen() string {
	if len(n) > 1 && n[1] == "rebooted" {
		return "the host was rebooted since"
	}
	return "it was killed on the host"
}

// refusal is why the host did not do it.
func (n note) refusal(op string, c *Conn) error {
	to, words := c.to, n[1:]
	word, rest := "", ""
	if len(words) > 0 {
		word, rest = words[0], strings.Join(words[1:], " ")
	}
	switch word {
	case "stale":
		return to.fault(op, KindStale, errors.New("the host has seen a newer attempt, nothing was "+
			"started"))
	case "marked":
		return to.fault(op, KindStale, fmt.Errorf("the host carries the marker of job %s by now, which "+
			"may be disturbing another member of its group: nothing was started",
			cmp.Or(Name(rest), "-")))
	case "busy":
		wait, who := busyWith(words[1:])
		return &Error{Op: op, Host: to.name, Addr: to.addr, Kind: KindBusy, Wait: wait,
			Err: fmt.Errorf("a step of %s is at work on the host", who)}
	case "work":
		wait, _ := busyWith(append(slices.Clip(words[1:]), "-"))
		return &Error{Op: op, Host: to.name, Addr: to.addr, Kind: KindWork, Wait: wait,
			Err: errors.New("the step is at work on the host")}
	case "untold":
		return to.fault(op, KindUntold, errors.New("the host has no record that could tell"))
	case "never":
		return to.fault(op, KindNever, errors.New("the step never began"))
	case "lacking":
		return to.fault(op, KindRecord, fmt.Errorf("it cannot keep a record of what it does, and its "+
			"fence is required: it lacks %s", c.lacks(rest)))
	case "disk":
		return to.fault(op, KindRecord, fmt.Errorf("no record could be written, nothing was started; "+
			"%s", hostSaid([]byte(rest))))
	}
	return to.faultSent(op, KindMute, fmt.Errorf("the host answered what is not known here; %s",
		hostSaid([]byte(strings.Join(words, " ")))))
}

// lacks says in words what record.sh found missing.
func (c *Conn) lacks(what string) string {
	folder := fmt.Sprintf("a folder that only %s can write (%s, or one in its home)", c.keeper.user,
		c.cfg.RecordDir)
	return strings.Replace(Missing(what), "folder", folder, 1)
}

// busyMax bounds what a host may say of how long another step takes.
const busyMax = 24 * time.Hour

func busyWith(words []string) (wait time.Duration, who string) {
	who = "somebody"
	if len(words) == 2 {
		if n, err := parseCount(words[0]); err == nil {
			wait = min(time.Duration(n)*time.Second, busyMax)
		}
		who = Name(words[1])
	}
	return wait, who
}

// whyLost says in words why output is lost, by the word of record.sh.
func whyLost(word string) string {
	switch word {
	case "":
		return ""
	case "full":
		return "the disk of the host was full"
	case "quota":
		return "the disk quota on the host was used up"
	}
	return "the host could not write it to its disk"
}

// An end is how a step ended, as its record says.
type end struct {
	how  string // exit, timeout, stopped
	code int
	open bool
	left []string
}

func parseEnd(words []string) (end, bool) {
	if len(words) < 3 {
		return end{}, false
	}
	code, err := parseCount(words[1])
	e := end{how: words[0], code: int(code), open: words[2] != "0", left: words[3:]}
	for _, p := range e.left {
		if processID(p) == 0 {
			return end{}, false
		}
	}
	known := e.how == "exit" || e.how == "timeout" || e.how == "stopped"
	return e, known && err == nil && code <= 255
}
