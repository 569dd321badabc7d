package watch

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"muster/cli"
	"muster/jobs"
)

// ChainPath returns the route of a chain.
func ChainPath(id jobs.TaskID) string { return "/v1/chains/" + url.PathEscape(string(id)) }

// ShowChain asks for a chain and shows it.
func ShowChain(ctx context.Context, s *cli.Session, id jobs.TaskID) error {
	var i jobs.ChainInfo
	if err := s.Get(ctx, ChainPath(id), nil, &i); err != nil {
		return err
	}
	return WriteChain(s.Screen, i)
}

// WriteChain shows a chain.
func WriteChain(s *cli.Screen, i jobs.ChainInfo) error {
	if s.JSON {
		return s.WriteJSON(i)
	}
	return s.Write(chainText(i, s.Colours))
}

// ToTheEndOfChain follows a chain and reports its end, also by the exit code.
func ToTheEndOfChain(ctx context.Context, s *cli.Session, i jobs.ChainInfo) error {
	for i.State != jobs.ChainEnded && i.State != jobs.ChainStopped {
		if !s.JSON {
			s.Say("%s", chainPhase(i))
		}
		seen := i.State
		for i.State == seen {
			q := url.Values{"wait": {"30s"}, "seen": {string(seen)}}
			var now jobs.ChainInfo // a fresh value: fields that the answer leaves out must be empty
			err := s.Do(ctx, cli.Call{Method: http.MethodGet, Path: ChainPath(i.Chain), Query: q,
				Bound: cli.SubmitTimeout}, &now)
			switch {
			case err != nil && ctx.Err() != nil:
				return cli.Exit(cli.ExitInterrupted, fmt.Errorf("interrupted: %s", chainRunsOn(i.Chain)))
			case err != nil && cli.Passing(err):
				return cli.Exit(cli.ExitUnreachable, fmt.Errorf("%w\n%s", err, chainRunsOn(i.Chain)))
			case err != nil:
				return err
			}
			i = now
		}
	}
	if err := WriteChain(s.Screen, i); err != nil {
		return err
	}
	return cli.ExitWith(exitOfChain(i))
}

func chainRunsOn(id jobs.TaskID) string {
	return fmt.Sprintf("it continues: look at it with `muster rollout show %[1]s`, end it with "+
		"`muster rollout undo %[1]s`", cli.Cell(string(id)))
}

// exitOfChain returns 0 only if the chain is in force on all hosts.
func exitOfChain(i jobs.ChainInfo) int {
	switch {
	case i.Why != "" || i.State == jobs.ChainStopped:
		return cli.ExitStopped
	case len(i.Fates) == 1 && i.Fates[jobs.FateChanged] != "":
		return cli.ExitOK
	}
	return cli.ExitNotAll
}

// ChainPlanLines describe what a chain will do, before it begins.
func ChainPlanLines(i *jobs.ChainInfo) []string {
	if i == nil {
		return nil
	}
	var lines []string
	when := "at once"
	if !i.At.IsZero() {
		when = "at " + cli.Moment(i.At)
	}
	if i.Tasks[0].Phase == jobs.PhaseStage {
		lines = append(lines, fmt.Sprintf("is prepared on %s first; stops if that fails on more than %d",
			cli.Count(i.Total, "host"), i.MaxFailed))
	}
	lines = append(lines, "is done "+when+" on all of them that no group or limit holds back")
	if i.RollBack {
		lines = append(lines, fmt.Sprintf("is undone on all hosts if more than %d fail", i.MaxFailed))
	} else {
		lines = append(lines, fmt.Sprintf("stops if more than %d fail", i.MaxFailed))
	}
	return lines
}

// chainPhase describes what a chain does now.
func chainPhase(i jobs.ChainInfo) string {
	text := "chain " + cli.Cell(string(i.Chain)) + ": " + cli.Cell(string(i.State))
	for _, t := range i.Tasks {
		if t.Info != nil && t.Info.State != jobs.TaskEnded {
			text += ", task " + cli.Cell(string(t.Task))
		}
	}
	if i.State == jobs.ChainStaged {
		text += ", waits for " + cli.Moment(i.At)
	}
	if i.Why != "" {
		text += ": " + cli.Cell(i.Why)
	}
	return text
}

// fateWords are the words for fates, for people.
var fateWords = map[jobs.Fate]string{jobs.FateUntouched: "not begun", jobs.FateOpen: "under way",
	jobs.FateChanged: "in force", jobs.FateBack: "taken back", jobs.FateFailed: "failed",
	jobs.FateUnknown: "not known"}

// chainText shows a chain with its tasks, and the fates of its hosts.
func chainText(i jobs.ChainInfo, colours cli.Palette) string {
	by := cli.Cell(i.Operator)
	if !i.Proven {
		by += " (unproven)"
	}
	text := fmt.Sprintf("chain %s: %s on %s for %s, %s\n", cli.Cell(string(i.Chain)),
		cli.Cell(i.Runbook),
		cli.Count(i.Total, "host"), by, cli.Cell(string(i.State)))
	if i.Why != "" {
		text += cli.Cell(i.Why) + "\n"
	}
	then := "it stops"
	if i.RollBack {
		then = "all of it is undone"
	}
	text += fmt.Sprintf("%d failed; if more than %d do, %s\n", i.Failed, i.MaxFailed, then)
	if i.Next != "" {
		text += cli.Cell(i.Next) + "\n"
	}
	if i.State == jobs.ChainStopped && i.Broken == "" {
		text += fmt.Sprintf("continue it with `muster rollout next %s --reason '…'`\n",
			cli.Cell(string(i.Chain)))
	}
	var rows [][2]string
	for _, t := range i.Tasks {
		words := cli.Cell(string(t.Task))
		switch {
		case t.Info == nil && t.Phase == jobs.PhaseUndo:
			continue
		case t.Info == nil:
			words += "  not yet"
		default:
			words += "  " + stateWords(*t.Info) + "  " +
				strings.Join(OutcomeWords(t.Info.Outcomes, colours), ", ")
		}
		rows = append(rows, [2]string{cli.Cell(t.Phase), words})
	}
	if !i.At.IsZero() {
		rows = append(rows, [2]string{"moment", cli.Moment(i.At)})
	}
	for _, f := range jobs.Fates() {
		rows = append(rows, [2]string{fateWords[f], cli.Cell(i.Fates[f])})
	}
	return text + LackLines(i.Waits, 0) + cli.Details(rows...)
}

// ChainWord names the chain of a task.
func ChainWord(t jobs.TaskInfo) string {
	if t.Chain == "" {
		return ""
	}
	return fmt.Sprintf("%[1]s: muster rollout show %[1]s", cli.Cell(string(t.Chain)))
}
