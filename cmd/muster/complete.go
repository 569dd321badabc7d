package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/jobs"
)

// Completions that ask the server have this long, and say nothing if it is
// away: a shell that waits or prints errors is worse than no completion.
const completionTimeout = time.Second

// completionTasks is how many tasks are offered.
const completionTasks = 30

const noFiles = cobra.ShellCompDirectiveNoFileComp

// completeFlag completes a flag from a fixed list.
func completeFlag(c *cobra.Command, flag string, values ...string) {
	completeFlagWith(c, flag, cobra.FixedCompletions(values, noFiles))
}

// completeFlagWith completes a flag by a function. A flag that does not exist is
// a mistake in this program, which a test finds.
func completeFlagWith(c *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

// askServer calls the server that the flags name.
func askServer[T any](c *cobra.Command, f func(context.Context, *client) (T, error)) (T, bool) {
	var none T
	flags := clientFlags{output: outputTable, server: c.Flag("server").Value.String()}
	s, err := flags.open(c)
	if err != nil {
		return none, false
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	v, err := f(ctx, s.client)
	return v, err == nil
}

func completeTasks(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	list, _ := askServer(c, func(ctx context.Context, cl *client) ([]jobs.TaskInfo, error) {
		return cl.tasks(ctx, completionTasks)
	})
	var words []cobra.Completion
	if len(list) > 0 {
		words = append(words, cobra.CompletionWithDesc(newestWord, "your newest task"))
	}
	for _, t := range list {
		words = append(words, cobra.CompletionWithDesc(cell(string(t.Task)),
			fmt.Sprintf("%s on %s, %s", cell(t.Runbook), count(t.Total, "host"), cell(string(t.State)))))
	}
	return words, noFiles
}

// completeJobs completes the task of a job first, then its host.
func completeJobs(c *cobra.Command, args []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	task, _, ok := strings.Cut(typed, ":")
	if !ok {
		words, d := completeTasks(c, args, typed)
		for i, w := range words {
			id, what, _ := strings.Cut(w, "\t")
			words[i] = cobra.CompletionWithDesc(id+":", what)
		}
		return words, d | cobra.ShellCompDirectiveNoSpace
	}
	id, err := jobs.ParseTaskID(task)
	if err != nil {
		return nil, noFiles
	}
	list, _ := askServer(c, func(ctx context.Context, cl *client) ([]jobs.JobInfo, error) {
		return cl.jobs(ctx, id, "", "")
	})
	var words []cobra.Completion
	for _, j := range list {
		words = append(words, cobra.CompletionWithDesc(cell(string(j.ID)), stateWord(j)))
	}
	return words, noFiles
}

// completeTaskOrJobs completes a task or a job first, then more jobs.
func completeTaskOrJobs(c *cobra.Command, args []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 && !strings.Contains(typed, ":") {
		return completeTasks(c, nil, typed)
	}
	if len(args) > 0 && !strings.Contains(args[0], ":") {
		return nil, noFiles
	}
	if len(args) > 0 && !strings.Contains(typed, ":") {
		typed = string(jobs.ID(args[0]).Task()) + ":"
	}
	return completeJobs(c, nil, typed)
}

func completeGroups(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	list, _ := askServer(c, func(ctx context.Context, cl *client) ([]jobs.Group, error) {
		return cl.groups(ctx)
	})
	var words []cobra.Completion
	for _, g := range list {
		if g.Frozen != "" {
			words = append(words, cobra.CompletionWithDesc(cell(g.Name), cell(g.Frozen)))
		}
	}
	return words, noFiles
}

func completeZones(c *cobra.Command, _ []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	list, _ := askServer(c, func(ctx context.Context, cl *client) ([]api.Zone, error) {
		return cl.zones(ctx)
	})
	var words []cobra.Completion
	for _, z := range list {
		words = append(words, cell(z.Zone))
	}
	return words, noFiles
}

// completeCustomers knows the customers by their hosts.
func completeCustomers(c *cobra.Command, _ []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	list, _ := askServer(c, allHosts)
	hosts := map[string]int{}
	for _, h := range list {
		if h.Customer != "" {
			hosts[h.Customer]++
		}
	}
	var words []cobra.Completion
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		words = append(words, cobra.CompletionWithDesc(cell(name), count(hosts[name], "host")))
	}
	return words, noFiles
}

// stateWord is the outcome of a job, or its state while it has none.
func stateWord(j jobs.JobInfo) string {
	if j.Outcome != "" {
		return cell(string(j.Outcome))
	}
	return cell(string(j.State))
}

// completeRunbookAndHosts completes a runbook and then a selector.
func completeRunbookAndHosts(c *cobra.Command, args []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return completeRunbooks(c, args, typed)
	case 1:
		return completeSelector(c, nil, typed)
	}
	return nil, noFiles
}

func completeRunbooks(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	list, _ := askServer(c, listRunbooks)
	var words []cobra.Completion
	for _, r := range list {
		words = append(words, cobra.CompletionWithDesc(cell(r.Name), cell(firstLine(r.Description))))
	}
	return words, noFiles
}

// completeArguments completes --arg for the runbook that was named before.
func completeArguments(c *cobra.Command, args []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 || strings.Contains(typed, "=") {
		return nil, noFiles
	}
	list, _ := askServer(c, listRunbooks)
	var words []cobra.Completion
	for _, r := range list {
		if r.Name != args[0] {
			continue
		}
		for _, a := range r.Arguments {
			words = append(words, cobra.CompletionWithDesc(cell(a.Name)+"=", cell(a.Description)))
		}
	}
	return words, noFiles | cobra.ShellCompDirectiveNoSpace
}

func listRunbooks(ctx context.Context, c *client) ([]api.Runbook, error) {
	return c.runbooks(ctx)
}
