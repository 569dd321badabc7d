package reset

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cli"
)

// House is the data of an installation in Redis.
type House interface {
	// Alive returns the nodes and servers that work with Redis, in words. It looks for at least the
	// given time unless it finds one.
	Alive(ctx context.Context, watch time.Duration) ([]string, error)
	Owner(ctx context.Context) (string, error)           // that Redis names; empty: none
	Count(ctx context.Context) (map[string]int, error)   // keys by kind
	Delete(ctx context.Context) (deleted int, err error) // all keys
}

// Audit makes the entry of the reset durable in the audit log. The function that it returns writes
// the outcome.
type Audit func(ctx context.Context, installation, reason string) (end func(result error) error,
	err error)

// Place is the house of a configuration.
type Place struct {
	House
	Installation string
	Redis        string // address, without a password
	Audit        Audit
}

// watch is longer than the time between two beats of a node (5 s), and than the lease of a duty.
const watch = 6 * time.Second

// Flags are the flags of the command.
type Flags struct {
	reason, yes string
	dryRun      bool
}

// Add adds the flags to a command.
func (f *Flags) Add(c *cobra.Command) {
	cli.AddReason(c, &f.reason)
	c.Flags().StringVar(&f.yes, "yes-delete", "",
		"`name` of the installation, in place of typing it when asked")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "only say what would be deleted")
	cli.CompleteFlagWith(c, "yes-delete", cobra.NoFileCompletions)
}

// Report is the answer of the command.
type Report struct {
	Installation string         `json:"installation"`
	Redis        string         `json:"redis"`
	Kinds        map[string]int `json:"kinds"`   // before: keys by kind, and jobs that wait
	Deleted      int            `json:"deleted"` // keys
	DryRun       bool           `json:"dry_run"`
}

// Check reports the mistakes in the flags.
func (f *Flags) Check() error {
	if f.dryRun {
		return nil
	}
	return cli.NeedReason(f.reason, "the test house begins anew")
}

// Run deletes what the installation has in Redis, unless somebody works with it.
func (f *Flags) Run(c *cobra.Command, p Place, s *cli.Screen) error {
	err := f.run(c, p, s)
	var has *cli.ExitError
	if err != nil && !errors.As(err, &has) {
		err = cli.Exit(cli.ExitNotAll, err)
	}
	return err
}

func (f *Flags) run(c *cobra.Command, p Place, s *cli.Screen) error {
	ctx := c.Context()
	if err := p.refuse(ctx, watch); err != nil {
		return err
	}
	kinds, err := p.Count(ctx)
	if err != nil {
		return err
	}
	r := Report{Installation: p.Installation, Redis: p.Redis, Kinds: kinds, DryRun: f.dryRun}
	if f.dryRun || len(kinds) == 0 {
		return r.write(s)
	}
	if err := f.ask(c, r, s); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if err := p.refuse(ctx, 0); err != nil { // a person may have thought for long
		return err
	}
	end, err := p.Audit(ctx, p.Installation, f.reason)
	if err != nil {
		return err
	}
	r.Deleted, err = p.Delete(ctx)
	if err != nil {
		err = fmt.Errorf("%d keys were deleted, others were not: call it again: %w", r.Deleted, err)
	}
	if err = errors.Join(err, end(err)); err != nil {
		return err
	}
	if err := r.write(s); err != nil {
		return err
	}
	return p.began(ctx)
}

// refuse returns an error if somebody works with this Redis, or it is that of another installation.
func (p Place) refuse(ctx context.Context, watch time.Duration) error {
	owner, err := p.Owner(ctx)
	if err != nil {
		return err
	}
	if owner != "" && owner != p.Installation {
		return fmt.Errorf("nothing was deleted: the timetable in %s is that of the installation %q, "+
			"and the key of servers here is that of %q: is it the right Redis, and the right key?",
			p.Redis, owner, p.Installation)
	}
	found, err := p.Alive(ctx, watch)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("nothing was deleted: somebody works with %s: %s. Stop all servers and masters "+
			"first; one that was killed counts as alive for 15 s", p.Redis, strings.Join(found, "; "))
	}
	return err
}

// began warns of a node or server that began to work while everything was deleted.
func (p Place) began(ctx context.Context) error {
	found, err := p.Alive(ctx, 0)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("meanwhile somebody began to work with %s: %s. Stop them, and call reset again",
			p.Redis, strings.Join(found, "; "))
	}
	return err
}

// ask says what would be deleted, and returns an error unless the name of the installation is the
// answer.
func (f *Flags) ask(c *cobra.Command, r Report, s *cli.Screen) error {
	if f.yes != "" {
		if f.yes != r.Installation {
			return fmt.Errorf("nothing was deleted: --yes-delete %q is not the name of this installation, "+
				"which is %s", f.yes, r.Installation)
		}
		return nil
	}
	for _, kind := range r.sorted() {
		s.Say("%8d %s", r.Kinds[kind], cli.Cell(kind))
	}
	s.Say("delete all this from %s, for good? Type the name of the installation, %s:", r.Redis,
		r.Installation)
	answer, _ := bufio.NewReader(c.InOrStdin()).ReadString('\n') // an empty input is a no
	if strings.TrimSpace(answer) != r.Installation {
		return fmt.Errorf("nothing was deleted: the answer was not %s; to answer beforehand: "+
			"--yes-delete %s", r.Installation, r.Installation)
	}
	return nil
}

func (r Report) sorted() []string { return slices.Sorted(maps.Keys(r.Kinds)) }

// write shows what was deleted, or would be.
func (r Report) write(s *cli.Screen) error {
	head := "DELETED"
	if r.DryRun {
		head = "WOULD BE DELETED"
	}
	list := cli.NewGrid("KIND", head)
	for _, kind := range r.sorted() {
		list.Add(cli.Cell(kind), strconv.Itoa(r.Kinds[kind]))
	}
	return s.List(r, list, r.Redis+" has nothing of muster: nothing to do")
}
