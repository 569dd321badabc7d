package complete

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// CompletionTasks bounds the tasks that are offered.
const CompletionTasks = 30

// Tasks offers the newest tasks.
func Tasks(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cli.NoFiles
	}
	list, _ := cli.AskServer(c, func(ctx context.Context, cl *cli.Client) ([]jobs.TaskInfo, error) {
		return cl.Tasks(ctx, CompletionTasks)
	})
	var words []cobra.Completion
	if len(list) > 0 {
		words = append(words, cobra.CompletionWithDesc(cli.NewestWord, "your newest task"))
	}
	for _, t := range list {
		words = append(words, cobra.CompletionWithDesc(cli.Cell(string(t.Task)),
			fmt.Sprintf("%s on %s, %s", cli.Cell(t.Runbook), cli.Count(t.Total, "host"),
				cli.Cell(string(t.State)))))
	}
	return words, cli.NoFiles
}

// Jobs completes first the task of a job, then its host.
func Jobs(c *cobra.Command, args []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cli.NoFiles
	}
	task, _, ok := strings.Cut(typed, ":")
	if !ok {
		words, d := Tasks(c, args, typed)
		for i, w := range words {
			id, what, _ := strings.Cut(w, "\t")
			words[i] = cobra.CompletionWithDesc(id+":", what)
		}
		return words, d | cobra.ShellCompDirectiveNoSpace
	}
	id, err := jobs.ParseTaskID(task)
	if err != nil {
		return nil, cli.NoFiles
	}
	list, _ := cli.AskServer(c, func(ctx context.Context, cl *cli.Client) ([]jobs.JobInfo, error) {
		return cl.Jobs(ctx, id, "", "")
	})
	var words []cobra.Completion
	for _, j := range list {
		words = append(words, cobra.CompletionWithDesc(cli.Cell(string(j.ID)), stateWord(j)))
	}
	return words, cli.NoFiles
}

// TaskOrJobs completes first a task or a job, then more jobs.
func TaskOrJobs(c *cobra.Command, args []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 && !strings.Contains(typed, ":") {
		return Tasks(c, nil, typed)
	}
	if len(args) > 0 && !strings.Contains(args[0], ":") {
		return nil, cli.NoFiles
	}
	if len(args) > 0 && !strings.Contains(typed, ":") {
		typed = string(jobs.ID(args[0]).Task()) + ":"
	}
	return Jobs(c, nil, typed)
}

// Groups offers the frozen redundancy groups.
func Groups(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cli.NoFiles
	}
	list, _ := cli.AskServer(c, func(ctx context.Context, cl *cli.Client) ([]jobs.Group, error) {
		return cl.Groups(ctx)
	})
	var words []cobra.Completion
	for _, g := range list {
		if g.Frozen != "" {
			words = append(words, cobra.CompletionWithDesc(cli.Cell(g.Name), cli.Cell(g.Frozen)))
		}
	}
	return words, cli.NoFiles
}

// Zones offers the zones.
func Zones(c *cobra.Command, _ []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	list, _ := cli.AskServer(c, func(ctx context.Context, cl *cli.Client) ([]api.Zone, error) {
		return cl.Zones(ctx)
	})
	var words []cobra.Completion
	for _, z := range list {
		words = append(words, cli.Cell(z.Zone))
	}
	return words, cli.NoFiles
}

// Customers offers the customers, taken from their hosts.
func Customers(c *cobra.Command, _ []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	list, _ := cli.AskServer(c, allHosts)
	hosts := map[string]int{}
	for _, h := range list {
		if h.Customer != "" {
			hosts[h.Customer]++
		}
	}
	var words []cobra.Completion
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		words = append(words, cobra.CompletionWithDesc(cli.Cell(name), cli.Count(hosts[name], "host")))
	}
	return words, cli.NoFiles
}

// stateWord returns the outcome of a job, or its state while it has none.
func stateWord(j jobs.JobInfo) string {
	if j.Outcome != "" {
		return cli.Cell(string(j.Outcome))
	}
	return cli.Cell(string(j.State))
}

// RunbookAndHosts completes a runbook and then a selector.
func RunbookAndHosts(c *cobra.Command, args []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return Runbooks(c, args, typed)
	case 1:
		return Selector(c, nil, typed)
	}
	return nil, cli.NoFiles
}

// Runbooks offers the runbooks.
func Runbooks(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cli.NoFiles
	}
	list, _ := cli.AskServer(c, listRunbooks)
	var words []cobra.Completion
	for _, r := range list {
		words = append(words, cobra.CompletionWithDesc(cli.Cell(r.Name),
			cli.Cell(cli.FirstLine(r.Description))))
	}
	return words, cli.NoFiles
}

// Arguments completes --arg for the runbook before it.
func Arguments(c *cobra.Command, args []string, typed string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 || strings.Contains(typed, "=") {
		return nil, cli.NoFiles
	}
	list, _ := cli.AskServer(c, listRunbooks)
	var words []cobra.Completion
	for _, r := range list {
		if r.Name != args[0] {
			continue
		}
		for _, a := range r.Arguments {
			words = append(words, cobra.CompletionWithDesc(cli.Cell(a.Name)+"=", cli.Cell(a.Description)))
		}
	}
	return words, cli.NoFiles | cobra.ShellCompDirectiveNoSpace
}

func listRunbooks(ctx context.Context, c *cli.Client) ([]api.Runbook, error) {
	return c.Runbooks(ctx)
}
