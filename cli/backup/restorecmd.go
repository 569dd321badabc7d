package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/books"
	"muster/cli/reach"
	"muster/internal/backupfile"
	"muster/internal/files"
	"muster/jobs/queue/archive"
	"muster/jobs/queue/wipe"
)

// newRestore makes the command backup restore.
func newRestore(audit Audit) *cobra.Command {
	var o orders
	var output string
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a house of a backup, in which nothing runs twice",
		Long: `restore reads the whole file, and changes nothing unless a server of this installation
wrote all of it. It refuses while a node beats or a server has a duty; it looks for 6 s.
A node that cannot reach Redis is not seen, so stop all masters first. It refuses the
Redis of another installation, and one that is not empty; --replace deletes what is
there.

All that had not ended at the time of the backup may have run since. So it ends unknown,
unless SQL knows how it ended: ask the hosts (muster job ID --ask), then order it again
(muster retry TASK --outcome unknown). Groups that it disturbed are frozen. Chains are
stopped, schedules continue with their next tick, and sessions have ended.

--keep-sql: only Redis was lost. SQL stays as it is, and says what has ended or begun
since the backup; all else continues. --continue: nobody worked when the backup was made,
nor since; then all work continues. It is refused for any other backup.

API tokens come back with --tokens only: those that were removed since, too.
Windows, freezes and approvals of later than the backup are lost. Therefore everything is
halted, until muster resume --all.

A restore that was broken off is called again, with --replace. A user of Redis needs the
rules of a server, and ` + archive.RestoreRules + `.

Exit codes: 0 it is restored, 1 it is not, 2 wrong use, or the name was not given.`,
		Example: `  muster backup restore FILE --identity backup.key --dry-run
  muster backup restore FILE --identity backup.key --reason 'the disk of db1 is gone'
  muster backup restore FILE --identity backup.key --keep-sql --reason 'Redis is gone'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFile,
		Annotations:       map[string]string{cli.Offline: "yes"},
	}
	conf := reach.AddFileFlags(c)
	identityFlag(c, &o.identity)
	cli.AddReason(c, &o.reason)
	c.Flags().StringVar(&o.yes, "yes-restore", "",
		"`name` of the installation, in place of typing it when asked")
	c.Flags().BoolVar(&o.replace, "replace", false, "delete what Redis and SQL have")
	c.Flags().BoolVar(&o.keepSQL, "keep-sql", false, "SQL was not lost, and stays as it is")
	c.Flags().BoolVar(&o.proceed, "continue", false, "work continues: nobody worked since the backup")
	c.Flags().BoolVar(&o.tokens, "tokens", false, "API tokens come back, also removed ones")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "only check the file and this house")
	books.OutputFlag(c, &output)
	cli.CompleteFlagWith(c, "yes-restore", cobra.NoFileCompletions)
	c.RunE = func(c *cobra.Command, args []string) error {
		o.path = args[0]
		err := cli.CheckOutput(output)
		if !o.dryRun {
			err = errors.Join(err, cli.NeedReason(o.reason, "the disk of db1 is gone"))
		}
		if o.keepSQL && o.proceed {
			err = errors.Join(err, errors.New("--keep-sql and --continue: want one of them"))
		}
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return o.run(c, conf, audit, output == cli.OutputJSON)
	}
	return c
}

func identityFlag(c *cobra.Command, list *[]string) {
	c.Flags().StringArrayVar(list, "identity", nil, "`file` with the key of age; repeatable")
}

// open returns a restore of a file, which done closes.
func (o orders) open(conf *reach.FileFlags, audit Audit) (b *restoring, done func(), err error) {
	own, err := backupfile.ReadIdentities(o.identity)
	if err != nil {
		return nil, nil, cli.Exit(cli.ExitUsage, err)
	}
	p, closePlace, err := placeOf(conf, audit)
	if err != nil {
		return nil, nil, err
	}
	file, _, err := files.Open(o.path)
	if err != nil {
		closePlace()
		return nil, nil, cli.Exit(cli.ExitUsage, err)
	}
	b = &restoring{place: p, orders: o, own: own, file: file}
	b.r = Restored{DryRun: o.dryRun, KeepSQL: o.keepSQL, Continue: o.proceed, Tokens: o.tokens}
	return b, func() {
		_ = file.Close() // it was only read
		closePlace()
	}, nil
}

// run restores.
func (o orders) run(c *cobra.Command, conf *reach.FileFlags, audit Audit, asJSON bool) error {
	b, done, err := o.open(conf, audit)
	if err != nil {
		return err
	}
	defer done()
	screen := cli.NewScreen(c)
	screen.JSON = asJSON
	b.in, b.say = c.InOrStdin(), screen.Say
	ctx := c.Context()
	if err := b.ready(ctx); err != nil {
		return err
	}
	if o.dryRun {
		return b.r.write(screen)
	}
	if err := b.restore(ctx); err != nil {
		return cli.Exit(cli.ExitNotAll, fmt.Errorf("the house is not restored, and nothing starts "+
			"in it: call it again, with --replace: %w", err))
	}
	if err := b.r.write(screen); err != nil {
		return err
	}
	return b.began(ctx)
}

// ready checks the file and the house, and asks. Nothing was changed when it returns an error.
func (b *restoring) ready(ctx context.Context) error {
	err := b.examine()
	if err != nil {
		return cli.Exit(cli.ExitNotAll, fmt.Errorf("nothing was changed: %s: %w", b.path, err))
	}
	if err := b.refuse(ctx, b.watch); err != nil {
		return cli.Exit(cli.ExitNotAll, fmt.Errorf("nothing was changed: %w", err))
	}
	if b.dryRun {
		return nil
	}
	if err := b.ask(); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if err := b.refuse(ctx, 0); err != nil { // a person may have thought for long
		return cli.Exit(cli.ExitNotAll, fmt.Errorf("nothing was changed: %w", err))
	}
	return nil
}

// began warns of a node or server that began to work meanwhile.
func (b *restoring) began(ctx context.Context) error {
	found, err := wipe.New(b.redis).Alive(ctx, 0)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("meanwhile somebody began to work with %s: %s. Stop them, and restore again, "+
			"with --replace", b.redis.Config().Where(), strings.Join(found, "; "))
	}
	if err != nil {
		err = cli.Exit(cli.ExitNotAll, err)
	}
	return err
}

// write shows what was restored.
func (r Restored) write(s *cli.Screen) error {
	if s.JSON {
		return s.WriteJSON(r)
	}
	s.Say("backup of %s by muster %s, installation %s: %d keys, %d rows", r.Made.Format(time.RFC3339),
		cli.Cell(r.Version), r.Installation, r.Summary.Keys, r.Summary.Rows)
	if r.DryRun {
		s.Say("the file is whole, and nothing is in the way: nothing was changed")
		return nil
	}
	s.Say("restored: %d keys of Redis, %d rows of SQL", r.Keys, r.Rows)
	switch {
	case r.KeepSQL:
		s.Say("a server will ask SQL what has ended or begun since; %d chains are stopped", r.Chains)
	case !r.Continue:
		s.Say("%d jobs have ended as SQL knew, %d are unknown; %d chains are stopped", r.Ended, r.Unknown,
			r.Chains)
	}
	if !r.Tokens {
		s.Say("API tokens did not come back: make new ones, or restore with --tokens")
	}
	s.Say("everything is halted: start the servers, look at muster health and muster windows ls, " +
		"then muster resume --all --reason …")
	return nil
}

// newCheck makes the command backup check.
func newCheck(audit Audit) *cobra.Command {
	var o orders
	var output string
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Read a whole backup, and say whether it could be restored",
		Long: `check reads the whole file: that it can be decrypted, that a server of this installation
wrote all of it, and that it is whole. It needs server.key, and asks neither Redis nor
SQL.

Exit codes: 0 it is whole, 1 it is not, 2 wrong use.`,
		Example: `  muster backup check /backup/muster-2026-11-28 --identity backup.key
  muster backup check FILE --identity backup.key -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFile,
		Annotations:       map[string]string{cli.Offline: "yes"},
	}
	conf := reach.AddFileFlags(c)
	identityFlag(c, &o.identity)
	books.OutputFlag(c, &output)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := cli.CheckOutput(output); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		o.path, o.dryRun = args[0], true
		b, done, err := o.open(conf, audit)
		if err != nil {
			return err
		}
		defer done()
		if err := b.examine(); err != nil {
			return cli.Exit(cli.ExitNotAll, fmt.Errorf("%s: %w", o.path, err))
		}
		screen := cli.NewScreen(c)
		screen.JSON = output == cli.OutputJSON
		if screen.JSON {
			return screen.WriteJSON(b.r)
		}
		screen.Say("backup of %s by muster %s, installation %s, zones %s: %d keys, %d rows: it is whole",
			b.r.Made.Format(time.RFC3339), cli.Cell(b.r.Version), b.r.Installation,
			strings.Join(b.r.Summary.Zones, ", "), b.r.Summary.Keys, b.r.Summary.Rows)
		return nil
	}
	return c
}
