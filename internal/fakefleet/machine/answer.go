package machine

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// This file answers requests to record.sh, put.sh and marker.sh with the same words, in the same
// order. The scripts explain them.

// request is a request to record.sh.
type request struct {
	verb, fence, key, step string
	token, since           int64
	again, twice, marks    bool
	limit                  int64 // seconds
	job, text              string
}

// requestMax bounds the bytes before the input of a command.
const requestMax = 256 << 10

var firstLine = regexp.MustCompile(`^nonce=(\w+);`)

// recorded reads a request and answers it.
func (p *process) recorded() Status {
	in := &lines{Source: p.cmd.In}
	p.cmd.In = in
	done := p.ctx.Done()
	first, _ := in.line(done)
	m := firstLine.FindStringSubmatch(first)
	var head [4]string
	for i := range head {
		head[i], _ = in.line(done)
	}
	q, ok := parseRequest(strings.Fields(head[0]))
	if m == nil || !ok {
		return Status{Code: 2}
	}
	q.job, q.text = head[2], unescape(head[3])
	// The script follows, up to the nonce, or to the end if the command has no input. Without its last
	// line nothing is done.
	last := ""
	for line, more := in.line(done); more && line != m[1]; line, more = in.line(done) {
		last = line
	}
	if last != "main" {
		return Status{}
	}
	return (&talk{p: p, request: q, nonce: m[1]}).answer()
}

func parseRequest(w []string) (q request, ok bool) {
	if len(w) != 12 {
		return q, false
	}
	bound, err := strconv.ParseInt(w[10], 10, 64)
	return request{verb: w[0], fence: w[1], key: w[2], step: w[3], token: tokenOf(w[4], w[5]),
		since: tokenOf(w[6], w[7]), again: w[8] == "1", twice: w[9] == "1", limit: bound,
		marks: w[11] == "1"}, err == nil
}

// tokenOf puts the halves of a token together.
func tokenOf(high, low string) int64 {
	h, _ := strconv.ParseInt(high, 10, 64) // digits
	l, _ := strconv.ParseInt(low, 10, 64)  // digits
	return h*1e9 + l
}

// talk is the answer to one request.
type talk struct {
	p *process
	request
	nonce string
	off   int64 // bytes of the step's output that were passed on
}

func (t *talk) say(format string, args ...any) Status {
	fmt.Fprintf(t.out(), t.nonce+" "+format+"\n", args...)
	return Status{}
}

func (t *talk) out() writer { return writer{t.p.ctx, t.p, t.p.cmd.Out} }

func (t *talk) records() *records { return &t.p.machine.records }

func (t *talk) answer() Status {
	if !t.records().settle(t.request) {
		if t.fence != "auto" {
			return t.say("no lacking folder")
		}
		t.say("hello plain folder")
		return t.say("no untold") // as for every request that begins nothing
	}
	t.say("hello fenced")
	switch t.verb {
	case "stop":
		return t.halt()
	case "put":
		return t.put()
	}
	return t.decide()
}

// patience is the time for which record.sh looks again before it reports that a host is busy.
const patience = 1880 * time.Millisecond

// decide waits until the answer is known, and carries it out.
func (t *talk) decide() Status {
	r := t.records()
	for {
		up := t.p.machine.uptimeNow()
		r.mu.Lock()
		v := r.decide(t.request, up)
		at := r.running
		switch v.do {
		case doStart:
			t.begin(v.step)
		case doForbid:
			r.sign(t.token)
			v.no = "never"
		}
		r.mu.Unlock()
		switch {
		case v.no != "":
			return t.say("no %s", v.no)
		case v.do == doStart:
			t.say("began")
			return t.follow(v.step)
		case v.do != "":
			t.say("attached %018d", v.step.token)
			if v.do == doAccompany {
				return t.follow(v.step)
			}
			return t.conclude(v.step)
		case !Pause(at.ended, patience):
		default:
			return t.say("no %s", busy(at, up).no)
		}
	}
}

// begin starts a step. The records are locked.
func (t *talk) begin(s *stepRecord) {
	r := t.records()
	s.boot = t.p.machine.bootID()
	r.add(s)
	r.running = s
	if t.p.cmd.Began != nil {
		t.p.cmd.Began(t.text)
	}
	s.run = t.p.machine.newProcess(t.p.ctx, t.p.cmd)
	t.p.asides.run(func() { t.perform(s) })
}

// perform runs a step to its end, even if all its clients are gone.
func (t *talk) perform(s *stepRecord) {
	p, r := s.run, t.records()
	limit := bound{after: time.Duration(s.limit) * time.Second, grace: 5 * time.Second}
	st := p.bounded(p.ctx, limit, func(ctx context.Context) Status {
		return p.sh(ctx, script{text: t.text, streams: streams{nil, &s.said, &s.said}})
	})
	if p.timedOut.Load() {
		t.p.timedOut.Store(true)
	}
	r.mu.Lock()
	s.how, s.code = "exit", st.seen()
	switch {
	case s.stop:
		s.how = "stopped"
	case p.timedOut.Load():
		s.how = "timeout"
	}
	if s.interrupted { // nobody was there to note the end
		r.mu.Unlock()
		t.p.machine.processes.drop(p)
		return
	}
	if r.running == s {
		r.running = nil
	}
	close(s.ended)
	r.mu.Unlock()
	if s.how == "timeout" {
		p.kill(sigKill) // the rest of its session
	}
	p.asides.wait()
	close(s.drained)
	t.p.machine.processes.drop(p)
	r.sweep(s.token)
}

// follow passes on the output of a step until it is over. Output of processes that the step left
// behind does not count.
func (t *talk) follow(s *stepRecord) Status {
	for !s.over() {
		rest, more := s.said.from(t.off)
		t.emit(rest)
		select {
		case <-more:
		case <-s.ended:
		case <-t.p.ctx.Done():
			return Status{Signal: diedOf(t.p.ctx)}
		}
	}
	Pause(s.drained, afterEnd)
	return t.conclude(s)
}

func (t *talk) emit(rest []piece) {
	for _, p := range rest {
		if p.at > t.off {
			t.say("at %d", p.at)
		}
		_, _ = t.out().Write(p.data) // it fails when nobody listens
		t.off = p.at + int64(len(p.data))
	}
}

// conclude reports the end of a step.
func (t *talk) conclude(s *stepRecord) Status {
	rest, _ := s.said.from(t.off)
	t.emit(rest)
	if !s.over() {
		if s.boot == t.p.machine.bootID() {
			return t.say("end gone")
		}
		return t.say("end rebooted")
	}
	if !isClosed(s.drained) {
		t.say("end %s %d 1", s.how, s.code)
		return Status{Signal: sigKill} // otherwise it would wait for the processes left behind
	}
	return t.say("end %s %d 0", s.how, s.code)
}

// halt stops a running step, and checks that it ended.
func (t *talk) halt() Status {
	r := t.records()
	r.mu.Lock()
	s := r.newest(t.key, t.step)
	word := ""
	switch {
	case s == nil:
		word = "none"
	case s.over():
		word = "ended"
	case !s.alive():
		word = "unsure"
	default:
		s.stop = true
	}
	r.mu.Unlock()
	if word == "" {
		word = "gone"
		if pid := s.run.pid; !s.run.end() {
			word = fmt.Sprintf("left %d", pid)
		}
	}
	return t.say("stopped %s", word)
}

// pass waits for the lock and returns the error; empty: the lock is held.
func (t *talk) pass() string {
	r := t.records()
	for {
		r.mu.Lock()
		v, ok := r.clean(t.request, t.p.machine.uptimeNow())
		at := r.running
		if ok && at == nil {
			return "" // locked
		}
		r.mu.Unlock()
		if !ok {
			return v.no
		}
		if Pause(at.ended, patience) {
			return busy(at, t.p.machine.uptimeNow()).no
		}
	}
}

// put writes a file, for the newest attempt that the host knows.
func (t *talk) put() Status {
	if no := t.pass(); no != "" {
		return t.say("no %s", no)
	}
	t.records().sign(t.token)
	t.records().mu.Unlock()
	if t.p.cmd.Began != nil {
		t.p.cmd.Began(t.text)
	}
	out := t.out()
	phase := func(ctx context.Context, word string) Status {
		return t.p.command(ctx, t.text, []string{word}, streams{nil, out, out})
	}
	t.say("mark %d %d", t.p.pid+1, t.p.pid)
	limit := bound{after: time.Duration(t.limit) * time.Second, grace: 5 * time.Second}
	st := t.p.bounded(t.p.ctx, limit, func(ctx context.Context) Status { return phase(ctx, "fetch") })
	what := map[int]string{fetched: "place", fetchedSame: "same"}[st.Code]
	if what == "" {
		return st
	}
	if no := t.pass(); no != "" {
		t.say("no %s", no)
		if no == "stale" {
			phase(t.p.ctx, "drop")
		}
		return Status{Code: 1}
	}
	defer t.records().mu.Unlock()
	return phase(t.p.ctx, what)
}

// bootID returns the id of this boot.
func (m *Machine) bootID() string {
	id, _ := m.disk().read(bootFile) // it is always there
	return strings.TrimSpace(string(id))
}

// uptimeNow returns the uptime of the machine in seconds.
func (m *Machine) uptimeNow() int64 {
	up, _ := m.disk().read(uptimeFile) // it is always there
	seconds, _, _ := strings.Cut(string(up), ".")
	n, _ := strconv.ParseInt(seconds, 10, 64)
	return n
}

// lines is a source whose first lines are read here.
type lines struct {
	Source
	kept []byte
	read int
}

// line reads a line. It returns false if there is no whole one.
func (l *lines) line(done <-chan struct{}) (string, bool) {
	for {
		if line, after, ok := bytes.Cut(l.kept, []byte("\n")); ok {
			l.kept = after
			return string(line), true
		}
		part := make([]byte, chunkMax)
		n, err := l.Source.Read(done, part)
		l.kept = append(l.kept, part[:n]...)
		if l.read += n; n == 0 && err != nil || l.read > requestMax {
			return "", false
		}
	}
}

// Read first returns the bytes that are kept.
func (l *lines) Read(done <-chan struct{}, p []byte) (int, error) {
	if len(l.kept) > 0 {
		n := copy(p, l.kept)
		l.kept = l.kept[n:]
		return n, nil
	}
	return l.Source.Read(done, p)
}

// assignment matches one of the variables in a request to marker.sh.
var assignment = regexp.MustCompile(`^(\w+)='?([^']*)'?$`)

// marker answers marker.sh.
func (p *process) marker(s streams) Status {
	in := &lines{Source: p.cmd.In}
	v, last := map[string]string{}, ""
	for line, more := in.line(p.ctx.Done()); more; line, more = in.line(p.ctx.Done()) {
		if m := assignment.FindStringSubmatch(line); m != nil && v[m[1]] == "" {
			v[m[1]] = m[2]
		}
		last = line
	}
	if last != "mark" { // nothing is done before the last line
		return Status{}
	}
	q := request{verb: "run", key: v["key"], token: tokenOf(v["hi"], v["lo"]), again: true}
	if v["off"] == "1" {
		q.verb = "ask"
	}
	said := ""
	switch r := &p.machine.records; {
	case r.settle(q):
		said = r.mark(v)
		for wait := patience; said == "no busy step" && wait > 0; wait -= markPause {
			Pause(p.ctx.Done(), markPause)
			said = r.mark(v)
		}
	case v["fence"] == "auto":
		said = "no plain folder"
	default:
		said = "no lacking folder"
	}
	fmt.Fprintf(s.out, "%s %s\n", v["nonce"], said)
	return Status{}
}

const markPause = 20 * time.Millisecond

// mark writes or removes a marker, and returns the words about it.
func (r *records) mark(v map[string]string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, ours := r.marker, r.marker != nil && r.marker[0] == v["key"]
	if ours && tokenOf(v["hi"], v["lo"]) < tokenOf(m[1], m[2]) {
		return "no stale"
	}
	if v["off"] == "1" {
		if ours {
			r.marker = nil
		}
		return "left"
	}
	if m != nil && !ours {
		if strings.Join(m[:3], " ") != v["over"] {
			return "no held " + strings.Join(m, " ")
		}
		if r.running != nil {
			return "no busy step"
		}
	}
	r.marker = []string{v["key"], v["hi"], v["lo"], v["uhi"], v["ulo"], v["group"], v["host"],
		v["job"]}
	return "marked"
}
