package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/jobs"
)

// addChain adds the flags of run by which other tasks go before one, or follow it.
func (f *rolloutFlags) addChain(c *cobra.Command) {
	c.Flags().BoolVar(&f.Staged, "staged", false, "prepare it on all hosts first, and do it on all "+
		"at once (--at), if no more than --max-failed (default 0) could not be prepared")
	c.Flags().BoolVar(&f.RollBack, "roll-back", false, "take it back on all hosts if more than "+
		"--max-failed (default 0) fail")
}

func newRolloutChains() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:   "chains",
		Short: "List orders of several tasks (run --staged, --roll-back) that have not ended",
		Example: `  muster rollout chains
  muster rollout chains -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *session, _ []string) error {
		var l api.ChainList
		if err := s.get(ctx, "/v1/chains", nil, &l); err != nil {
			return err
		}
		g := newGrid("CHAIN", "RUNBOOK", "OPERATOR", "STATE", ">TOTAL", ">FAILED", ">MAY FAIL", "AT",
			"WHY")
		for _, i := range l.Chains {
			g.add(cell(string(i.Chain)), cell(i.Runbook), cell(i.Operator), cell(string(i.State)),
				fmt.Sprint(i.Total), fmt.Sprint(i.Failed), fmt.Sprint(i.MaxFailed), orDash(moment(i.At)),
				orDash(fit(cell(i.Why), lineColumns)))
		}
		return s.list(filled(l.Chains), g, "no order of several tasks is on its way")
	})
}

func newRolloutUndo() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "undo TASK",
		Short: "Take back what was run with --staged or --roll-back, on all hosts",
		Long: `undo ends what has not begun and takes the rest back, by the runbook that the one
which was run names under undo. It is done once.`,
		Example:           `  muster rollout undo 0wcy7y2fb2 --reason 'customers of acme are cut off'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTasks,
	}
	addReason(c, &reason)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		id, err := taskArg(args[0])
		if err == nil {
			if err = needReason(reason, "customers of acme are cut off"); err != nil {
				err = exit(exitUsage, err)
			}
		}
		if err != nil {
			return err
		}
		return s.orderChain(ctx, id, "undo", reason)
	})
}

func chainPath(id jobs.TaskID) string { return "/v1/chains/" + url.PathEscape(string(id)) }

// orderChain gives an order about a chain and shows how it stands then.
func (s *session) orderChain(ctx context.Context, id jobs.TaskID, verb, reason string) error {
	var i jobs.ChainInfo
	if err := s.order(ctx, chainPath(id)+"/"+verb, reason, &i); err != nil {
		return refusedUse(err)
	}
	return s.writeChain(i)
}

func (s *session) showChain(ctx context.Context, id jobs.TaskID) error {
	var i jobs.ChainInfo
	if err := s.get(ctx, chainPath(id), nil, &i); err != nil {
		return err
	}
	return s.writeChain(i)
}

func (s *session) writeChain(i jobs.ChainInfo) error {
	if s.json {
		return s.writeJSON(i)
	}
	return s.write(chainText(i, s.colours))
}

// toTheEndOfChain follows a chain and tells how it ended, by its exit code, too.
func (s *session) toTheEndOfChain(ctx context.Context, i jobs.ChainInfo) error {
	for i.State != jobs.ChainEnded && i.State != jobs.ChainStopped {
		if !s.json {
			s.say("%s", chainPhase(i))
		}
		seen := i.State
		for i.State == seen {
			q := url.Values{"wait": {"30s"}, "seen": {string(seen)}}
			var now jobs.ChainInfo // what is left out of an answer is not as it was before
			err := s.do(ctx, call{method: http.MethodGet, path: chainPath(i.Chain), query: q,
				bound: submitTimeout}, &now)
			switch {
			case err != nil && ctx.Err() != nil:
				return exit(exitInterrupted, fmt.Errorf("interrupted: %s", chainRunsOn(i.Chain)))
			case err != nil && passing(err):
				return exit(exitUnreachable, fmt.Errorf("%w\n%s", err, chainRunsOn(i.Chain)))
			case err != nil:
				return err
			}
			i = now
		}
	}
	if err := s.writeChain(i); err != nil {
		return err
	}
	return exitWith(exitOfChain(i))
}

func chainRunsOn(id jobs.TaskID) string {
	return fmt.Sprintf("it goes on: look at it with `muster rollout show %[1]s`, end it with `muster "+
		"rollout undo %[1]s`", cell(string(id)))
}

// exitOfChain is 0 only if it is in force on all hosts.
func exitOfChain(i jobs.ChainInfo) int {
	switch {
	case i.Why != "" || i.State == jobs.ChainStopped:
		return exitStopped
	case len(i.Fates) == 1 && i.Fates[jobs.FateChanged] != "":
		return exitOK
	}
	return exitNotAll
}

// chainPlanLines say what a chain will do, before it begins.
func chainPlanLines(i *jobs.ChainInfo) []string {
	if i == nil {
		return nil
	}
	var lines []string
	when := "at once"
	if !i.At.IsZero() {
		when = "at " + moment(i.At)
	}
	if i.Tasks[0].Phase == jobs.PhaseStage {
		lines = append(lines, fmt.Sprintf("is prepared on %s first; stops if that fails on more than %d",
			count(i.Total, "host"), i.MaxFailed))
	}
	lines = append(lines, "is done "+when+" on all of them that no group or limit holds back")
	if i.RollBack {
		lines = append(lines, fmt.Sprintf("is taken back on all if more than %d fail", i.MaxFailed))
	} else {
		lines = append(lines, fmt.Sprintf("stops if more than %d fail", i.MaxFailed))
	}
	return lines
}

// chainPhase says what a chain does.
func chainPhase(i jobs.ChainInfo) string {
	text := "chain " + cell(string(i.Chain)) + ": " + cell(string(i.State))
	for _, t := range i.Tasks {
		if t.Info != nil && t.Info.State != jobs.TaskEnded {
			text += ", task " + cell(string(t.Task))
		}
	}
	if i.State == jobs.ChainStaged {
		text += ", waits for " + moment(i.At)
	}
	if i.Why != "" {
		text += ": " + cell(i.Why)
	}
	return text
}

// fateWords are what people read of fates.
var fateWords = map[jobs.Fate]string{jobs.FateUntouched: "not begun", jobs.FateOpen: "under way",
	jobs.FateChanged: "in force", jobs.FateBack: "taken back", jobs.FateFailed: "failed",
	jobs.FateUnknown: "not known"}

// chainText is a chain with its tasks, and what became of its hosts.
func chainText(i jobs.ChainInfo, colours palette) string {
	by := cell(i.Operator)
	if !i.Proven {
		by += " (unproven)"
	}
	text := fmt.Sprintf("chain %s: %s on %s for %s, %s\n", cell(string(i.Chain)), cell(i.Runbook),
		count(i.Total, "host"), by, cell(string(i.State)))
	if i.Why != "" {
		text += cell(i.Why) + "\n"
	}
	then := "it stops"
	if i.RollBack {
		then = "all is taken back"
	}
	text += fmt.Sprintf("%d failed; if more than %d do %s\n", i.Failed, i.MaxFailed, then)
	if i.Next != "" {
		text += cell(i.Next) + "\n"
	}
	if i.State == jobs.ChainStopped && i.Broken == "" {
		text += fmt.Sprintf("let it go on with `muster rollout next %s --reason '…'`\n",
			cell(string(i.Chain)))
	}
	var rows [][2]string
	for _, t := range i.Tasks {
		words := cell(string(t.Task))
		switch {
		case t.Info == nil && t.Phase == jobs.PhaseUndo:
			continue
		case t.Info == nil:
			words += "  not yet"
		default:
			words += "  " + stateWords(*t.Info) + "  " +
				strings.Join(outcomeWords(t.Info.Outcomes, colours), ", ")
		}
		rows = append(rows, [2]string{cell(t.Phase), words})
	}
	if !i.At.IsZero() {
		rows = append(rows, [2]string{"moment", moment(i.At)})
	}
	for _, f := range jobs.Fates() {
		rows = append(rows, [2]string{fateWords[f], cell(i.Fates[f])})
	}
	return text + lackLines(i.Waits, 0) + details(rows...)
}

// chainWord says of which chain a task is a part.
func chainWord(t jobs.TaskInfo) string {
	if t.Chain == "" {
		return ""
	}
	return fmt.Sprintf("%[1]s: muster rollout show %[1]s", cell(string(t.Chain)))
}
