package orders

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
	"muster/fleet"
	"muster/jobs"
)

// NewGate makes the command gate.
func NewGate() *cobra.Command {
	c := &cobra.Command{
		Use:   "gate",
		Short: "Show jobs that wait for a person, and answer them",
		Long: `A gate is a step of a runbook at which a job waits until a person has looked and
answers. The job needs no worker while it waits. If the person opens the gate, the job
continues at once. If the person refuses it, or nobody opens it in time, the step fails.
An answer is for one gate of one job, and the first answer counts.`,
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
	return cli.Command(&cobra.Command{
		Use:     "ls [TASK|SELECTOR]",
		Aliases: []string{"list"},
		Short:   "List the jobs that wait at a gate",
		Example: `  muster gate ls
  muster gate ls 0wcy7y2fb2
  muster gate ls customer=acme -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete.Tasks,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		l, err := watch.GatesOf(ctx, s.Client, append(args, "")[0])
		if err != nil {
			return err
		}
		watch.Banner(ctx, s)
		if err := s.List(cli.Filled(l.Gates), gateGrid(l.Gates), "no job waits at a gate"); err != nil {
			return err
		}
		if more := l.Total - len(l.Gates); more > 0 {
			s.Say("%s more: name a task, or a selector", cli.Count(more, "job"))
		}
		return nil
	})
}

func gateGrid(list []api.Standing) cli.Grid {
	g := cli.NewGrid("JOB", "RUNBOOK", "GATE", "SINCE", "UNTIL", "QUESTION", "ANSWER")
	for _, one := range list {
		question := cli.Cell(strings.Join(strings.Fields(one.Question), " "))
		g.Add(cli.Cell(string(one.Job)), cli.Cell(one.Runbook), cli.Cell(one.Name), cli.Moment(one.Since),
			cli.Moment(one.Until), cli.Fit(question, watch.LineColumns),
			cli.OrDash(cli.Fit(cli.Cell(one.Answer), watch.LineColumns)))
	}
	return g
}

func newGateAnswer(verb string) *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   verb + " JOB|TASK...",
		Short: "Let jobs that wait at a gate continue",
		Long: `open lets jobs that wait at a gate continue at once. With a task it is for all jobs of
the task that wait at a gate now; jobs that reach a gate later ask again.`,
		Example: `  muster gate open 0wcy7y2fb2:ns1 --reason 'the DS is in .ch'
  muster gate open 0wcy7y2fb2 --reason 'all of them are drained'`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeGates,
	}
	if verb == "refuse" {
		c.Short = "Let jobs that wait at a gate fail"
		c.Long = `refuse lets the gates fail at which jobs wait. The error names the person and the
reason, its class is operator, and the on_fail of the gate runs. With a task it is for
all jobs of the task that wait at a gate now.`
		c.Example = `  muster gate refuse 0wcy7y2fb2:ns1 --reason 'wrong digest'
  muster gate refuse 0wcy7y2fb2 --reason 'called off'`
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		asked, err := gateArgs(args)
		if err == nil && strings.TrimSpace(reason) == "" {
			err = fmt.Errorf("--reason is missing: say what you saw, such as --reason 'the DS is in .ch'")
		}
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return answerGates(ctx, s, verb, reason, asked)
	})
}

// ofTask is a task, or some of its jobs, whose gates the order answers.
type ofTask struct {
	task jobs.TaskID
	jobs []jobs.ID // none: all
}

// gateArgs groups tasks and jobs by task. A task includes its jobs.
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
			errs = append(errs, fmt.Errorf("%w; `muster gate ls` lists the jobs that wait at a gate", err))
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

// answerGates answers gates, task after task, and prints the results.
func answerGates(ctx context.Context, s *cli.Session, verb, reason string, asked []*ofTask) error {
	word, all := jobs.GateWord(verb), true
	did := []jobs.Answers{}
	var errs []error
	for _, one := range asked {
		var a jobs.Answers
		err := s.Do(ctx, cli.Call{Method: http.MethodPost, Bound: cli.SubmitTimeout,
			Path: "/v1/tasks/" + url.PathEscape(string(one.task)) + "/gates/" + verb,
			Body: api.GateRequest{OrderRequest: api.OrderRequest{Reason: reason, As: s.As},
				Jobs: one.jobs}}, &a)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		did, all = append(did, a), all && answered(a, word)
		if !s.JSON {
			errs = append(errs, s.Write(answersText(a)))
		}
	}
	if s.JSON {
		errs = append(errs, s.WriteJSON(did))
	}
	if err := errors.Join(errs...); err != nil {
		return cli.Exit(cli.CodeOf(err), err)
	}
	if !all {
		return cli.ExitWith(cli.ExitNotAll)
	}
	return nil
}

// answered reports whether all gates now have the wanted answer.
func answered(a jobs.Answers, word jobs.GateWord) bool {
	for _, one := range a.Answered {
		if one.Word != word {
			return false
		}
	}
	return len(a.Answered) > 0 && len(a.Elsewhere) == 0
}

// answersText describes the result of an answer, hosts with the same result together.
func answersText(a jobs.Answers) string {
	task := cli.Cell(string(a.Task))
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
		text += fmt.Sprintf("task %s: %s: %s\n", task, watch.GateWords(one),
			cli.Fit(cli.Cell(fleet.Fold(hosts[one])), watch.HostColumns))
	}
	for _, e := range a.Elsewhere {
		text += fmt.Sprintf("job %s waits at no gate: %s\n", cli.Cell(string(e.Job)),
			watch.WhereWords(e))
	}
	if len(a.Answered) == 0 && len(a.Elsewhere) == 0 {
		text += fmt.Sprintf("task %s: no job waits at a gate; not ended: %s\n", task,
			cli.Count(a.Rest, "job"))
	}
	if len(a.Stand) > 0 && len(a.Elsewhere) > 0 {
		var list []string
		for _, id := range a.Stand {
			list = append(list, cli.Cell(string(id)))
		}
		text += "these do: " + strings.Join(list, ", ") + "; muster gate ls " + task + "\n"
	}
	return text
}

// completeGates completes jobs at a gate, and their tasks.
func completeGates(c *cobra.Command, _ []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	l, _ := cli.AskServer(c, func(ctx context.Context, cl *cli.Client) (api.GateList, error) {
		return watch.Gates(ctx, cl, nil)
	})
	var words []cobra.Completion
	seen := map[jobs.TaskID]bool{}
	for _, one := range l.Gates {
		if one.Answer != "" {
			continue
		}
		if strings.Contains(typed, ":") || len(l.Gates) < complete.CompletionTasks {
			words = append(words, cobra.CompletionWithDesc(cli.Cell(string(one.Job)),
				cli.Fit(cli.Cell(strings.Join(strings.Fields(one.Question), " ")), 60)))
		}
		if !seen[one.Task] && !strings.Contains(typed, ":") {
			words = append(words, cobra.CompletionWithDesc(cli.Cell(string(one.Task)),
				"all of "+cli.Cell(one.Runbook)))
		}
		seen[one.Task] = true
	}
	return words, cli.NoFiles
}
