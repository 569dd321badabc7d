package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/jobs"
)

func newTasks() *cobra.Command {
	limit := 0
	c := &cobra.Command{
		Use:   "tasks",
		Short: "List the newest tasks",
		Example: `  muster tasks
  muster tasks --limit 5 -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().IntVar(&limit, "limit", 20, "how many at most")
	return clientCommand(c, func(ctx context.Context, s *session, _ []string) error {
		const most = 500
		if limit < 1 || limit > most {
			return exit(exitUsage, fmt.Errorf("--limit %d: want 1 to %d", limit, most))
		}
		list, err := s.tasks(ctx, limit)
		if err != nil {
			return err
		}
		s.banner(ctx)
		return s.list(list, taskGrid(list, s.colours), "there are no tasks: `muster run` makes one")
	})
}

// tasks lists the newest tasks.
func (c *client) tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error) {
	var l api.TaskList
	err := c.get(ctx, "/v1/tasks", url.Values{"limit": {strconv.Itoa(limit)}}, &l)
	return filled(l.Tasks), err
}

// filled makes of no list an empty one, which JSON shows as [].
func filled[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func taskGrid(list []jobs.TaskInfo, colours palette) grid {
	g := newGrid("TASK", "RUNBOOK", "OPERATOR", "STATE", ">DONE", ">TOTAL", ">SUCCEEDED", ">OTHER",
		"SUBMITTED", ">TOOK", "ON", "ARGUMENTS")
	for _, t := range list {
		done, good := t.Outcomes.Sum(), t.Outcomes[jobs.Succeeded]
		other := strconv.Itoa(done - good)
		if done > good {
			other = colours.paint(red, other)
		}
		g.add(cell(string(t.Task)), cell(t.Runbook), cell(t.Operator), stateWords(t),
			strconv.Itoa(done), strconv.Itoa(t.Total), strconv.Itoa(good), other, moment(t.Submitted),
			span(seconds(t.Seconds)), fit(cell(t.On), 60), ranWords(t.Ran))
	}
	return g
}

func newTask() *cobra.Command {
	wait := false
	c := &cobra.Command{
		Use:   "task TASK",
		Short: "Show a task and what its hosts said, or wait for its end",
		Example: `  muster task 0wcy7y2fb2
  muster task 0wcy7y2fb2 --wait`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTasks,
	}
	c.Flags().BoolVar(&wait, "wait", false, "follow it to its end; exit codes as those of muster run")
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		id, err := taskArg(args[0])
		if err != nil {
			return err
		}
		if !wait {
			return s.showTask(ctx, id)
		}
		t, err := s.first(ctx, id)
		if err != nil {
			return err
		}
		if t, err = s.follow(ctx, t); err != nil {
			return err
		}
		if !s.json {
			return s.conclude(ctx, t)
		}
		if err := s.showTask(ctx, id); err != nil {
			return err
		}
		return exitWith(exitOf(t))
	})
}

// scheduleWords says of which schedule a task is, and of which of its ticks.
func scheduleWords(t jobs.TaskInfo) string {
	switch {
	case t.Schedule == "":
		return ""
	case t.Tick.IsZero():
		return cell(t.Schedule) + ", run by a person"
	}
	return cell(t.Schedule) + ", tick " + moment(t.Tick)
}

// yes is a word for what is worth saying only if it is so.
func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

// summary is a task with what its hosts said.
func (c *client) summary(ctx context.Context, id jobs.TaskID, excerpt int) (
	s api.Summary, err error) {
	q := url.Values{}
	if excerpt > 0 {
		q.Set("excerpt", strconv.Itoa(excerpt))
	}
	err = c.do(ctx, call{method: http.MethodGet, bound: submitTimeout, query: q,
		path: "/v1/tasks/" + url.PathEscape(string(id)) + "/summary"}, &s)
	return s, err
}

// taskDetails is a task in JSON, with what its hosts said.
type taskDetails struct {
	jobs.TaskInfo
	Groups  []api.Alike `json:"groups"`
	AtGates int         `json:"at_gates,omitempty"` // jobs that wait for a person
	Waits   []jobs.Lack `json:"waits,omitempty"`    // what others of them wait for
	// Awaits is for which windows and freezes they wait.
	Awaits []jobs.Appointment `json:"awaits,omitempty"`
}

func (s *session) showTask(ctx context.Context, id jobs.TaskID) error {
	sum, err := s.summary(ctx, id, 0)
	if err != nil {
		return err
	}
	if s.json {
		return s.writeJSON(taskDetails{sum.Task, filled(sum.Groups), sum.AtGates, sum.Waits,
			sum.Awaits})
	}
	t := sum.Task
	told := slices.ContainsFunc(sum.Waits, func(l jobs.Lack) bool { return l.Order })
	if t.State != jobs.TaskEnded && !told {
		s.stands(ctx, id)
	}
	return s.write(details(append(ranPairs(t.Runbook, t.Ran),
		[2]string{"on", cell(t.On)},
		[2]string{"priority", cell(string(t.Priority))},
		[2]string{"submitted", moment(t.Submitted)},
		[2]string{"started", moment(t.Started)},
		[2]string{"finished", moment(t.Finished)},
		[2]string{"inventory", cell(t.Inventory)},
		[2]string{"disruptive", yes(t.Disruptive)},
		[2]string{"supersedes", cell(t.Supersedes)},
		[2]string{"retry of", cell(string(t.RetryOf))},
		[2]string{"reason", cell(t.Reason)},
		[2]string{"schedule", scheduleWords(t)},
		[2]string{"rule", ruleWords(t)},
		[2]string{"chain", chainWord(t)},
	)...) + "\n" + summaryText(sum, s.tableWidth(), s.colours))
}
