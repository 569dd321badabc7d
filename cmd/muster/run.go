package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/internal/files"
	"muster/jobs"
	"muster/scripts"
)

func newRun() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run RUNBOOK SELECTOR",
		Short: "Run a runbook on hosts, and follow it",
		Long: `run submits a task: a runbook, its arguments, and the hosts to run it on. The list
of hosts is fixed at that moment. Then it follows the task and ends with a summary
of what the hosts said; the task does not depend on it and runs on without it.
The selector may stand behind --on instead. For a command there is muster exec.

` + selectorHelp + `
An empty selection is an error, and drained hosts are left out.

Jobs of a runbook with "window: required", or with --window, begin in the approved
windows of their hosts (muster windows). The plan says how many have their turn in
which opening; hosts without any are an error before anything is queued. So is
work if neither an earlier success, the runbook nor --expect tells how long it takes.

Exit codes: 0 all jobs succeeded, 1 some did not, 2 wrong use, 3 the server does not
answer, 4 cancelled or stopped by a rule, 130 interrupted (the task runs on).`,
		Example: `  muster run exec 'role=fw' --arg cmd='uname -a'
  muster run exec 'fw[001-020]' --arg cmd='uptime' --dry-run
  muster run firewall --on 'role=fw' --arg-file ruleset=new.nft --diff
  muster run db-password --on 'role=db' --arg password=@/run/secrets/db
  muster run exec --on 'role=db' --arg cmd='id' --become-password ask
  muster run exec --on all --arg cmd='df -h' --detach
  muster run exec --on vpn1 --arg cmd='id' --wait -o json
  muster run exec --on 'customer=acme' --arg cmd='date' --at '2026-12-01 02:00'
  muster run firmware --on all --arg-file bundle=a.raucb --arg version=2.0 --dry-run
  muster run exec --on fw007 --arg cmd=reboot --override-freeze 'INC-7: the cause'
  muster run exec --on 'role=fw' --arg cmd='reload' --supersedes rules/acme
  muster run exec --on 'role=fw' --arg cmd='reload' --max-failed 2% --breaker 3/10m
  muster run reload --on 'role=fw' --max-failed 5 --waves 1,10%,50%,100% --soak 5m
  muster run firewall --on all --arg-file ruleset=a.nft --staged --roll-back`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeRunbookAndHosts,
	}
	f.addWhat(c)
	f.add(c)
	missesItself(c, "on")
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		if err := f.name(args); err != nil {
			return exit(exitUsage, err)
		}
		return s.run(ctx, f, args[0])
	})
}

// name takes the selector that stands behind the runbook.
func (f *runFlags) name(args []string) error {
	switch {
	case len(args) < 2:
		return nil
	case f.on != "":
		return fmt.Errorf("the hosts are named twice, %s and --on %s: give one selector",
			quoted(args[1]), quoted(f.on))
	}
	f.on = args[1]
	return nil
}

// addWhat adds the flags that say what is to run, and where.
func (f *runFlags) addWhat(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.on, "on", "", "`selector` of the hosts")
	fl.StringArrayVar(&f.args, "arg", nil, "`name=value`, of a secret name=@file; can be repeated")
	fl.StringArrayVar(&f.files, "arg-file", nil,
		"argument of type file, `name=path`; - is the standard input; can be repeated")
	completeFlagWith(c, "on", completeSelector)
	completeFlagWith(c, "arg", completeArguments)
}

// addTerms adds the flags on which it depends when a task is done, for run and plan.
func (f *runFlags) addTerms(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.at, "at", "", "do not start before this `time`: 2026-12-01T02:00:00Z, "+
		"'2026-12-01 02:00' (local), or +90m")
	fl.StringVar(&f.expire, "expire", "",
		"jobs not started so long after their `time` expire (default 8h)")
	fl.BoolVar(&f.disruptive, "disruptive", false,
		"one host of a redundancy group at a time, whatever the runbook says")
	fl.BoolVar(&f.timed.SkipClosed, "skip-closed", false,
		"leave out hosts for which no approved window is known, instead of refusing")
	fl.StringVar(&f.priority, "priority", "", "high, normal or low: the task's `share` of a queue "+
		"that is overloaded (default normal)")
	fl.StringVar(&f.become, "become-password", "",
		"the password of sudo, where hosts have become: sudo: `@file`, @- or ask")
	f.addTimed(c)
	f.only.add(c)
	completeFlag(c, "priority", string(jobs.PriorityHigh), string(jobs.PriorityNormal),
		string(jobs.PriorityLow))
}

// add adds the flags that say how a task is to run.
func (f *runFlags) add(c *cobra.Command) {
	f.addTerms(c)
	fl := c.Flags()
	fl.StringVar(&f.supersedes, "supersedes", "",
		"end what older tasks with this `key` have queued on the same hosts")
	fl.StringVar(&f.id, "id", "", "`id` of the task, to complete a submit that got no answer")
	fl.BoolVar(&f.watch.wait, "wait", false, "wait for the end, also with -o json")
	fl.BoolVar(&f.watch.detach, "detach", false, "print the task and do not follow it")
	fl.BoolVar(&f.dry, "dry-run", false, "tell what would be done and do nothing")
	f.rollout.add(c)
	c.MarkFlagsMutuallyExclusive("wait", "detach", "dry-run")
}

// runFlags are the flags of run.
type runFlags struct {
	on, at, expire, id string
	supersedes         string
	priority           string
	args, files        []string
	watch              watchFlags
	dry, disruptive    bool
	become             string
	only               onlyFlags
	rollout            rolloutFlags
	timed              api.Timed
}

// watchFlags say how far the end is waited for.
type watchFlags struct{ wait, detach bool }

// onlyFlags ask for dry runs on the hosts.
type onlyFlags struct{ check, diff bool }

func (f *onlyFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.check, "check", false,
		"only what the runbook checks before its first change, on the hosts")
	c.Flags().BoolVar(&f.diff, "diff", false, "likewise, and show what it would change")
	c.MarkFlagsMutuallyExclusive("check", "diff")
}

// what is the dry run that is asked for; empty: none.
func (f onlyFlags) what() string {
	switch {
	case f.check:
		return scripts.OnlyCheck
	case f.diff:
		return scripts.OnlyDiff
	}
	return ""
}

// run submits a task and, unless told otherwise, follows it.
func (s *session) run(ctx context.Context, f runFlags, runbook string) error {
	end, err := s.takeLarge(ctx, &f)
	defer end()
	if err != nil {
		return err
	}
	ask := s.keyhole()
	if f.dry {
		ask = nil
	}
	secrets, err := s.takeSecrets(ctx, &f, runbook, ask, argFiles(ctx))
	if err != nil {
		return err
	}
	if secrets, err = f.withBecome(ctx, secrets, ask, argFiles(ctx)); err != nil {
		return exit(exitUsage, err)
	}
	b, err := f.submit(runbook, s.now(), s.files.reader(ctx))
	if err != nil {
		return exit(exitUsage, err)
	}
	b.As, b.Secrets = s.as, secrets
	if b.ID == "" && !b.DryRun {
		b.ID = string(jobs.NewTaskID(s.now(), chance()))
	}
	t, err := s.client.submit(ctx, b, func(error, time.Duration) {
		s.say("no answer, trying again")
	})
	if err != nil {
		return submitEnding(ctx, b, err)
	}
	switch {
	case b.DryRun:
		return s.showPlan(t)
	case s.json && !f.watch.wait:
		return s.writeJSON(t)
	case f.watch.detach:
		s.say("%s", accepted(t))
		s.sayPlan(t)
		if t.Follows != nil {
			s.say("look at it with `muster rollout show %s`", t.Task)
		} else {
			s.say("follow it with `muster task %s --wait`", t.Task)
		}
		return s.write(cell(string(t.Task)) + "\n")
	case !s.json:
		s.say("%s", accepted(t))
		s.sayPlan(t)
	}
	if t.Follows != nil {
		return s.toTheEndOfChain(ctx, *t.Follows)
	}
	return s.toTheEnd(ctx, t.TaskInfo)
}

// submitEnding gives the end of a submit without an answer its exit code.
func submitEnding(ctx context.Context, b api.Submit, err error) error {
	var no *refusal
	switch {
	case ctx.Err() != nil && b.DryRun:
		return exit(exitInterrupted, nil)
	case ctx.Err() != nil:
		return exit(exitInterrupted, errors.New("interrupted: "+unsure(jobs.TaskID(b.ID))))
	case errors.As(err, &no) && no.status < 500:
		return exit(exitUsage, err)
	}
	return exit(codeOf(err), err)
}

// conclude prints the summary of a task that ended, and returns its exit code.
func (s *session) conclude(ctx context.Context, t jobs.TaskInfo) error {
	sum, err := s.summary(ctx, t.Task, 0)
	if err != nil {
		s.say("there is no summary: %s", cell(err.Error()))
		sum = api.Summary{Task: t}
	}
	if err := s.write(summaryText(sum, s.tableWidth(), s.colours)); err != nil {
		return err
	}
	if hint := nextLook(t); hint != "" {
		s.say("%s", hint)
	}
	return exitWith(exitOf(t))
}

// nextLook is the one thing to do next about a task of which not all succeeded; empty if
// there is nothing to do.
func nextLook(t jobs.TaskInfo) string {
	for _, o := range jobs.Outcomes() {
		if n := t.Outcomes[o]; n > 0 && o != jobs.Succeeded && o != jobs.Skipped && o != jobs.Cancelled {
			return fmt.Sprintf("look closer with `muster jobs %s --outcome %s`", cell(string(t.Task)), o)
		}
	}
	return ""
}

// exitWith is the end of a command that said everything already.
func exitWith(code int) error {
	if code == exitOK {
		return nil
	}
	return exit(code, nil)
}

// accepted says what the server took upon itself.
func accepted(t api.Submitted) string {
	words := fmt.Sprintf("task %s: %s on %s for %s", cell(string(t.Task)), cell(t.Runbook),
		count(t.Total, "host"), operatorWords(t.TaskInfo))
	if t.Durable != "" {
		words += " (Redis: " + cell(t.Durable) + ")"
	}
	return words
}

// sayPlan tells what is to be known of the hosts of a task before it runs.
func (s *screen) sayPlan(t api.Submitted) {
	s.sayLeftOut(t.LeftOut)
	if t.Unfenced != "" {
		s.say("unfenced, keep no record of attempts: %s", cell(t.Unfenced))
	}
	if t.Unmarked != nil {
		s.say("no host carries a marker in %s: if Redis loses its data while one is disturbed, nothing "+
			"keeps the others from being disturbed, too", cell(groupWords(t.Unmarked)))
	}
	for _, line := range t.Frozen {
		s.say("begins later: %s", cell(line))
	}
	for _, line := range windowWords(t.Windows, s.now().Location()) {
		s.say("%s", line)
	}
	s.sayRule(t)
	for _, line := range chainPlanLines(t.Follows) {
		s.say("%s", line)
	}
}

// groupWords names some groups.
func groupWords(names []string) string {
	const most = 10
	text := strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if len(names) == 1 {
		return "group " + text
	}
	return "groups " + text
}

// showPlan tells what a submit would come to.
func (s *session) showPlan(t api.Submitted) error {
	if s.json {
		return s.writeJSON(t)
	}
	s.sayPlan(t)
	return s.write(fmt.Sprintf("would run %s on %s for %s: %s\n", cell(t.Runbook),
		count(t.Total, "host"), operatorWords(t.TaskInfo), cell(t.Hosts)))
}

// submit makes the body of a submit, or reports all that is wrong with the flags.
func (f runFlags) submit(runbook string, now time.Time,
	read func(path string) ([]byte, error)) (api.Submit, error) {
	b := api.Submit{ID: f.id, Runbook: runbook, Expire: f.expire, DryRun: f.dry,
		Manner:     api.Manner{Only: f.only.what(), Disruptive: f.disruptive},
		Supersedes: f.supersedes, Priority: f.priority,
		Args: map[string]string{}, Files: map[string][]byte{},
		Timed: f.timed}
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	if f.on == "" {
		note(errors.New("no hosts are named: write a selector behind the runbook, such as 'role=fw', " +
			"'fw[001-020]' or all"))
	}
	rollout, err := f.rollout.ask()
	note(err)
	b.Rollout = rollout
	on, err := withFiles(f.on, read)
	b.On = on
	note(flagMistakes("--on", err))
	if f.id != "" {
		if _, err := jobs.ParseTaskID(f.id); err != nil {
			note(fmt.Errorf("--id: %w", err))
		}
	}
	if f.expire != "" {
		if d, err := time.ParseDuration(f.expire); err != nil || d <= 0 {
			note(fmt.Errorf("--expire %q: want a time such as 90m or 8h", f.expire))
		}
	}
	if _, err := jobs.ParsePriority(f.priority); err != nil {
		note(fmt.Errorf("--priority: %w", err))
	}
	at, err := parseAt(f.at, now)
	note(err)
	b.At = jobs.Time{Time: at}
	given := map[string]bool{}
	for _, text := range f.args {
		name, value, err := splitArg("--arg", text, given)
		note(err)
		b.Args[name] = value
	}
	for _, text := range f.files {
		name, path, err := splitArg("--arg-file", text, given)
		if err == nil {
			b.Files[name], err = read(path)
		}
		if err != nil {
			note(fmt.Errorf("--arg-file %s: %w", name, err))
		}
	}
	return b, errors.Join(errs...)
}

// flagMistakes puts the flag before each line of what is wrong with it.
func flagMistakes(flag string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(flag + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+flag+": "))
}

// splitArg reads name=value. A name can be given once.
func splitArg(flag, text string, given map[string]bool) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	switch {
	case !ok:
		return "", "", fmt.Errorf("%s %q: want name=value, there is no '='", flag, text)
	case name == "":
		return "", "", fmt.Errorf("%s %q: there is no name before '='", flag, text)
	case given[name]:
		return name, value, fmt.Errorf("%s %q: this argument was given already", flag, name)
	}
	given[name] = true
	return name, value, nil
}

// parseAt reads when a task may start: the zero time is at once.
func parseAt(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if later, ok := strings.CutPrefix(text, "+"); ok {
		if d, err := time.ParseDuration(later); err == nil && d >= 0 {
			return now.Add(d), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, form := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--at %q: want 2026-12-01T02:00:00Z, '2026-12-01 02:00' (local "+
		"time) or +90m", text)
}

// argFileMax is more than a server takes of all files of a task, so that the
// server's own words about it are heard, but no device is read for ever.
const argFileMax = 2 << 20 // bytes

// readArgFile reads what an argument names: a file, "-", or <(command).
func readArgFile(ctx context.Context, path string) ([]byte, error) {
	return files.ReadGiven(ctx, path, argFileMax)
}

// argFiles is readArgFile with its context.
func argFiles(ctx context.Context) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) { return readArgFile(ctx, path) }
}

// chance is what makes two task ids of the same moment differ.
func chance() uint16 {
	var b [2]byte
	rand.Read(b[:]) // never fails
	return uint16(b[0])<<8 | uint16(b[1])
}
