package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

func newGate() *cobra.Command {
	c := &cobra.Command{
		Use:   "gate",
		Short: "Show jobs that wait for a person, and answer them",
		Long: `A runbook may have a gate: a step at which a job stands until a person has looked and
says so. It takes no worker meanwhile. Opened, the job goes on at once; refused, or not
opened in time, the step has failed. An answer is for one gate of one job, and the first
one counts.`,
		Example: `  muster gate ls
  muster gate open 0wcy7y2fb2:ns1 --reason 'the DS is in .ch'
  muster gate refuse 0wcy7y2fb2:ns1 --reason 'wrong digest'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newGateList(), newGateAnswer("open"), newGateAnswer("refuse"))
	return c
}

func newGateList() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:     "ls [TASK|SELECTOR]",
		Aliases: []string{"list"},
		Short:   "List the jobs that stand at a gate",
		Example: `  muster gate ls
  muster gate ls 0wcy7y2fb2
  muster gate ls customer=acme -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTasks,
	}, func(ctx context.Context, s *session, args []string) error {
		l, err := s.gatesOf(ctx, append(args, "")[0])
		if err != nil {
			return err
		}
		if err := s.list(filled(l.Gates), gateGrid(l.Gates), "no job stands at a gate"); err != nil {
			return err
		}
		if more := l.Total - len(l.Gates); more > 0 {
			s.say("%s more: name a task, or a selector", count(more, "job"))
		}
		return nil
	})
}

// gatesOf lists the jobs at gates of a task, or on what a selector picks. A host may be
// called like a task: what no task is called is a selector.
func (c *client) gatesOf(ctx context.Context, of string) (api.GateList, error) {
	if _, err := jobs.ParseTaskID(of); err == nil {
		l, err := c.gates(ctx, url.Values{"task": {of}})
		var no *refusal
		if !errors.As(err, &no) || no.status != http.StatusNotFound {
			return l, err
		}
		if l, other := c.gates(ctx, url.Values{"on": {of}}); other == nil {
			return l, nil
		}
		return l, err
	}
	q := url.Values{}
	if of != "" {
		q.Set("on", of)
	}
	return c.gates(ctx, q)
}

func (c *client) gates(ctx context.Context, q url.Values) (l api.GateList, err error) {
	err = c.do(ctx, call{method: http.MethodGet, path: "/v1/gates", query: q,
		bound: submitTimeout}, &l)
	return l, err
}

// unanswered counts the jobs of a list that wait for a person.
func unanswered(l api.GateList) (n int) {
	for _, one := range l.Gates {
		if one.Answer == "" {
			n++
		}
	}
	return n
}

func gateGrid(list []api.Standing) grid {
	g := newGrid("JOB", "RUNBOOK", "GATE", "SINCE", "UNTIL", "QUESTION", "ANSWER")
	for _, one := range list {
		question := cell(strings.Join(strings.Fields(one.Question), " "))
		g.add(cell(string(one.Job)), cell(one.Runbook), cell(one.Name), moment(one.Since),
			moment(one.Until), fit(question, lineColumns), orDash(fit(cell(one.Answer), lineColumns)))
	}
	return g
}

func newGateAnswer(verb string) *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   verb + " JOB|TASK...",
		Short: "Let jobs go on that stand at a gate",
		Long: `open lets jobs go on, at once, that stand at a gate. With a task it is for all of its
jobs that stand at one now; those that come to it later ask again.`,
		Example: `  muster gate open 0wcy7y2fb2:ns1 --reason 'the DS is in .ch'
  muster gate open 0wcy7y2fb2 --reason 'all of them are drained'`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeGates,
	}
	if verb == "refuse" {
		c.Short = "Let jobs fail that stand at a gate"
		c.Long = `refuse has the step fail at which jobs stand, class operator, with who refused and
why; its on_fail runs. With a task it is for all of its jobs that stand at a gate now.`
		c.Example = `  muster gate refuse 0wcy7y2fb2:ns1 --reason 'wrong digest'
  muster gate refuse 0wcy7y2fb2 --reason 'called off'`
	}
	addReason(c, &reason)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		asked, err := gateArgs(args)
		if err == nil && strings.TrimSpace(reason) == "" {
			err = fmt.Errorf("--reason is missing: say what you saw, such as --reason 'the DS is in .ch'")
		}
		if err != nil {
			return exit(exitUsage, err)
		}
		return s.answerGates(ctx, verb, reason, asked)
	})
}

// ofTask is a task, or some of its jobs, whose gates are to be answered.
type ofTask struct {
	task jobs.TaskID
	jobs []jobs.ID // none: all
}

// gateArgs reads tasks and jobs, by task. A task takes in its jobs.
func gateArgs(args []string) (list []*ofTask, err error) {
	var errs []error
	by, whole := map[jobs.TaskID]*ofTask{}, map[jobs.TaskID]bool{}
	for _, text := range args {
		task, err := jobs.ParseTaskID(text)
		var job jobs.ID
		if strings.Contains(text, ":") {
			job, err = jobs.ParseID(text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%w; `muster gate ls` lists the jobs that stand at a gate", err))
			continue
		}
		if job != "" {
			task = job.Task()
		}
		one := by[task]
		if one == nil {
			one = &ofTask{task: task}
			by[task], list = one, append(list, one)
		}
		if job == "" {
			whole[task], one.jobs = true, nil
		} else if !whole[task] {
			one.jobs = append(one.jobs, job)
		}
	}
	return list, errors.Join(errs...)
}

// answerGates answers gates, task after task, and tells what came of it.
func (s *session) answerGates(ctx context.Context, verb, reason string, asked []*ofTask) error {
	word, all := jobs.GateWord(verb), true
	did := []jobs.Answers{}
	var errs []error
	for _, one := range asked {
		var a jobs.Answers
		err := s.do(ctx, call{method: http.MethodPost, bound: submitTimeout,
			path: "/v1/tasks/" + url.PathEscape(string(one.task)) + "/gates/" + verb,
			body: api.GateRequest{OrderRequest: api.OrderRequest{Reason: reason, As: s.as},
				Jobs: one.jobs}}, &a)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		did, all = append(did, a), all && answered(a, word)
		if !s.json {
			errs = append(errs, s.write(answersText(a)))
		}
	}
	if s.json {
		errs = append(errs, s.writeJSON(did))
	}
	if err := errors.Join(errs...); err != nil {
		return exit(codeOf(err), err)
	}
	if !all {
		return exitWith(exitNotAll)
	}
	return nil
}

// answered tells whether all that was asked for is so now.
func answered(a jobs.Answers, word jobs.GateWord) bool {
	for _, one := range a.Answered {
		if one.Word != word {
			return false
		}
	}
	return len(a.Answered) > 0 && len(a.Elsewhere) == 0
}

// answersText tells what an answer did, hosts that fared alike together.
func answersText(a jobs.Answers) string {
	task := cell(string(a.Task))
	var order []jobs.Answered
	hosts := map[jobs.Answered][]string{}
	for _, one := range a.Answered {
		host := one.Job.Host()
		one.Job = ""
		if _, seen := hosts[one]; !seen {
			order = append(order, one)
		}
		hosts[one] = append(hosts[one], host)
	}
	text := ""
	for _, one := range order {
		text += fmt.Sprintf("task %s: %s: %s\n", task, gateWords(one),
			fit(cell(fleet.Fold(hosts[one])), hostColumns))
	}
	for _, e := range a.Elsewhere {
		text += fmt.Sprintf("job %s stands at no gate: %s\n", cell(string(e.Job)), whereWords(e))
	}
	if len(a.Answered) == 0 && len(a.Elsewhere) == 0 {
		text += fmt.Sprintf("task %s: no job stands at a gate; %s to end yet\n", task,
			count(a.Rest, "job"))
	}
	if len(a.Stand) > 0 && len(a.Elsewhere) > 0 {
		var list []string
		for _, id := range a.Stand {
			list = append(list, cell(string(id)))
		}
		text += "these do: " + strings.Join(list, ", ") + "; muster gate ls " + task + "\n"
	}
	return text
}

func gateWords(a jobs.Answered) string {
	gate := "the gate " + cell(a.Name)
	if a.Name == "" {
		gate = fmt.Sprintf("the gate at step %d, which is passed,", a.Step+1)
	}
	is := "is refused"
	switch a.Word {
	case jobs.GateOpen:
		is = "is open"
	case jobs.GateLate:
		is = "was not opened in time"
	}
	if a.Already {
		return gate + " " + is + " already, " + cell(a.Note)
	}
	return gate + " " + is
}

func whereWords(e jobs.Elsewhere) string {
	if e.State == jobs.Ended {
		return "it has ended, " + cell(string(e.Outcome))
	}
	return fmt.Sprintf("it is %s, at step %d", cell(string(e.State)), e.Step+1)
}

// gateText shows the gate at which a job stands. What is asked may hold what a host said,
// and stands behind a bar.
func gateText(j jobs.JobInfo) string {
	g := j.Gate
	if g == nil {
		return ""
	}
	text := fmt.Sprintf("\nIt waits at the gate %s for a person, since %s and until %s:\n",
		cell(g.Name), moment(g.Since), moment(g.Until))
	for line := range strings.Lines(remote.Harmless(g.Question)) {
		text += "  | " + strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    ") + "\n"
	}
	id := cell(string(j.ID))
	if g.Answer != "" {
		return text + "The gate was " + cell(g.Answer) + ". The job goes on when it may.\n"
	}
	return text + fmt.Sprintf("muster gate open %[1]s --reason '…'\n"+
		"muster gate refuse %[1]s --reason '…'\n", id)
}

// atGates says how many jobs of a task wait for a person.
func atGates(n int, task jobs.TaskID) string {
	stand := "stand"
	if n == 1 {
		stand = "stands"
	}
	return fmt.Sprintf("%s %s at a gate for a person: muster gate ls %s", count(n, "job"), stand,
		cell(string(task)))
}

// completeGates completes jobs that stand at a gate, and their tasks.
func completeGates(c *cobra.Command, _ []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	l, _ := askServer(c, func(ctx context.Context, cl *client) (api.GateList, error) {
		return cl.gates(ctx, nil)
	})
	var words []cobra.Completion
	seen := map[jobs.TaskID]bool{}
	for _, one := range l.Gates {
		if one.Answer != "" {
			continue
		}
		if strings.Contains(typed, ":") || len(l.Gates) < completionTasks {
			words = append(words, cobra.CompletionWithDesc(cell(string(one.Job)),
				fit(cell(strings.Join(strings.Fields(one.Question), " ")), 60)))
		}
		if !seen[one.Task] && !strings.Contains(typed, ":") {
			words = append(words, cobra.CompletionWithDesc(cell(string(one.Task)),
				"all of "+cell(one.Runbook)))
		}
		seen[one.Task] = true
	}
	return words, noFiles
}
