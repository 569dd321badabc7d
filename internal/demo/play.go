package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/watch"
	"muster/internal/fakefleet"
	"muster/jobs"
)

const (
	// demoCommand takes a moment, and has three different answers in the fleet.
	demoCommand = "sleep 0.2; cat /etc/os-release"
	// demoHead is the time by which bob comes later.
	demoHead = 300 * time.Millisecond
)

// demoTask is one act of the demo, as its JSON shows it.
type demoTask struct {
	Name      string      `json:"name"`
	Operator  string      `json:"operator"`
	Task      jobs.TaskID `json:"task"`
	Total     int         `json:"total"`
	Outcomes  jobs.Counts `json:"outcomes"`
	Submitted jobs.Time   `json:"submitted"`
	Seconds   float64     `json:"seconds"`
	demoTimes
}

// Story is the result of the whole demo.
type Story struct {
	Hosts     int            `json:"hosts"`
	Redis     string         `json:"redis"` // where the queue is: redis-server with its version, or inside
	Tasks     []demoTask     `json:"tasks"`
	Fifo      demoTimes      `json:"fifo"` // times of the small task if it had been served last
	Reordered jobs.Reordered `json:"reordered"`
	Rules     demoRollout    `json:"rules"` // the second chapter
	Children  int            `json:"children_started"`
	Commands  int            `json:"commands"` // commands that the hosts saw
	Overlaps  int            `json:"overlaps"` // times when two commands ran at once inside one host
	Seconds   float64        `json:"seconds"`
}

func newDemoTask(name string, t jobs.TaskInfo) demoTask {
	return demoTask{Name: name, Operator: t.Operator, Task: t.Task, Total: t.Total,
		Outcomes: t.Outcomes, Submitted: t.Submitted, Seconds: t.Seconds}
}

func playDemo(c *cobra.Command, f demoFlags) error {
	if err := f.check(); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	ctx, hurry, stop := interrupts(c)
	defer stop()
	began := time.Now()
	st, err := buildStage(ctx, f, hurry)
	if err == nil {
		defer st.close()
	}
	if ctx.Err() != nil {
		return cli.Exit(cli.ExitInterrupted, errors.New("interrupted: nothing is left behind"))
	}
	if err != nil {
		return cli.Exit(cli.ExitNotAll, err)
	}
	s, err := st.session(c)
	if err != nil {
		return cli.Exit(cli.ExitNotAll, err)
	}
	defer s.Close()
	if err := st.agree(ctx, s); err != nil {
		return cli.Exit(cli.ExitNotAll, errors.Join(err, st.logs()))
	}
	if !f.story {
		st.stay(ctx, s)
		return nil
	}
	if f.stay && !s.JSON {
		s.Say("export MUSTER_URL=%s\n%s", st.url, st.link(ctx, s))
	}
	story, err := st.play(ctx, s)
	if ctx.Err() != nil {
		return cli.Exit(cli.ExitInterrupted, errors.New("interrupted: nothing is left behind"))
	}
	if err != nil {
		return cli.Exit(cli.ExitNotAll, errors.Join(err, st.logs()))
	}
	story.Seconds = time.Since(began).Round(time.Millisecond).Seconds()
	if err := st.tell(s, story); err != nil {
		return err
	}
	if f.stay {
		st.stay(ctx, s)
	}
	if story.Overlaps > 0 {
		return cli.Exit(cli.ExitNotAll, fmt.Errorf("%d times two commands ran at once inside a host",
			story.Overlaps))
	}
	return nil
}

// interrupts ends ctx with the first Ctrl-C, and closes hurry with the second. The third ends the
// program in any case.
func interrupts(c *cobra.Command) (ctx context.Context, hurry <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(c.Context())
	signal.Ignore(syscall.SIGPIPE) // a reader that goes must not end it half way
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	soon, quit := make(chan struct{}), make(chan struct{})
	deeds := []func(){
		func() {
			c.PrintErrln("everything is taken down; one more Ctrl-C, and at once")
			cancel()
		},
		func() { close(soon) },
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		defer signal.Stop(heard)
		for _, do := range deeds {
			select {
			case <-heard:
				do()
			case <-quit:
				return
			}
		}
	})
	return ctx, soon, func() {
		close(quit)
		wait.Wait()
		cancel()
	}
}

// session returns a session with the demo's server, like any operator's.
func (st *stage) session(c *cobra.Command) (*cli.Session, error) {
	cl, err := cli.NewClient(st.url, "")
	if err != nil {
		return nil, err
	}
	s := &cli.Session{Client: cl, Screen: cli.NewScreen(c)}
	s.JSON = st.flags.format == "json"
	return s, nil
}

// awaitServer waits until the server reports that it is healthy.
func awaitServer(ctx context.Context, url string) error {
	cl, err := cli.NewClient(url, "")
	if err != nil {
		return err
	}
	defer cl.Close()
	_, err = backoff.Retry(ctx, func() (api.Health, error) {
		var h api.Health
		err := cl.Get(ctx, "/v1/health", nil, &h)
		return h, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(20*time.Millisecond)),
		backoff.WithMaxElapsedTime(20*time.Second))
	return err
}

// play submits both tasks and follows them to their ends.
func (st *stage) play(ctx context.Context, s *cli.Session) (Story, error) {
	story := Story{Hosts: st.flags.hosts, Redis: st.redis.words}
	note := func(format string, args ...any) {
		if !s.JSON {
			s.Say(format, args...)
		}
	}
	note("on stage: %s", st.cast())
	small := strings.Join(st.fleet.Names(fakefleet.Normal)[:4], ",")
	acts := []struct{ name, operator, on string }{{"big", "alice", "all"}, {"small", "bob", small}}
	var running []jobs.TaskInfo
	for i, a := range acts {
		if i > 0 && !cli.Sleep(ctx, demoHead) {
			return story, ctx.Err()
		}
		id := jobs.NewTaskID(time.Now(), cli.Chance())
		t, err := s.Submit(ctx, api.Submit{ID: string(id), Runbook: "exec", On: a.on, As: a.operator,
			Args: map[string]string{"cmd": demoCommand}}, nil)
		if err != nil {
			return story, err
		}
		note("%s submits task %s: `%s` on %s", a.operator, t.Task, demoCommand,
			cli.Count(t.Total, "host"))
		running = append(running, t.TaskInfo)
	}
	for i := range running {
		end, err := watch.Follow(ctx, s, running[i])
		if err != nil {
			return story, err
		}
		story.Tasks = append(story.Tasks, newDemoTask(acts[i].name, end))
	}
	if err := st.fairness(ctx, s, &story); err != nil {
		return story, err
	}
	var err error
	if story.Rules, err = st.rollOut(ctx, s); err != nil {
		return story, err
	}
	var nodes api.NodeList
	if err := s.Get(ctx, "/v1/nodes", nil, &nodes); err != nil {
		return story, err
	}
	for _, n := range nodes.Nodes {
		story.Children += n.Spawned
	}
	seen := st.fleet.Stats()
	story.Commands, story.Overlaps = seen.Commands, len(st.fleet.Overlaps())
	return story, nil
}

// cast lists the kinds of hosts.
func (st *stage) cast() string {
	var kinds []string
	for _, c := range st.fleet.Summary() {
		kinds = append(kinds, fmt.Sprintf("%d %s", c.Hosts, c.Personality))
	}
	return fmt.Sprintf("a pretended fleet of %s on 127.77.0.0/16 (%s); %s; "+
		"a server, and a master with up to %d children of %d slots each, as processes of their own; "+
		"overload.after is %s", cli.Count(st.flags.hosts, "host"), strings.Join(kinds, ", "),
		st.redis.words, st.flags.children, st.flags.slots, demoAfter)
}

// tell prints what happened.
func (st *stage) tell(s *cli.Session, story Story) error {
	if s.JSON {
		return s.WriteJSON(story)
	}
	var b strings.Builder
	for _, t := range story.Tasks {
		var sum api.Summary
		path := "/v1/tasks/" + string(t.Task) + "/summary"
		if err := s.Get(context.Background(), path, nil, &sum); err != nil {
			return err
		}
		b.WriteString("\n" + watch.SummaryText(sum, s.TableWidth(), s.Colours))
	}
	b.WriteString("\nThe story\n")
	for _, t := range story.Tasks {
		fmt.Fprintf(&b, "  %-5s  the %s task, %s: first start %s after its submit, done after %s\n",
			t.Operator, t.Name, cli.Count(t.Total, "host"),
			cli.Span(t.FirstStart.Sub(t.Submitted.Time)), cli.Span(cli.Seconds(t.Seconds)))
	}
	b.WriteString(fairWords(story))
	b.WriteString(rulesWords(story.Rules))
	fmt.Fprintf(&b, "  The hosts' own log has %s, and never two at once inside one host (%d).\n",
		cli.Count(story.Commands, "command"), story.Overlaps)
	fmt.Fprintf(&b, "  Child processes started: %d. In all it took %s.\n", story.Children,
		cli.Span(cli.Seconds(story.Seconds)))
	return s.Write(b.String())
}

// link returns words with a link to the pages, which works once.
func (st *stage) link(ctx context.Context, s *cli.Session) string {
	var l api.LoginLink
	err := s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/login/links",
		Bound: cli.CallTimeout}, &l)
	if err != nil {
		return "There is no link for a browser: " + err.Error()
	}
	return "See it in a browser (the link works once, for a minute; `muster login --browser` makes " +
		"another):\n\n  " + l.URL + "\n"
}

// stay keeps the stage until Ctrl-C.
func (st *stage) stay(ctx context.Context, s *cli.Session) {
	s.Say(`
Everything keeps running until Ctrl-C. In another terminal:

  export MUSTER_URL=%s
  muster tasks
  muster nodes
  muster exec 'role=vpn' -- uname -a
  muster task last
  muster hosts 'fw[0001-0020]'
  muster events

%s
`, st.url, st.link(ctx, s))
	<-ctx.Done()
}
