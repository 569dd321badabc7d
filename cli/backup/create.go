package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/books"
	"muster/cli/reach"
	"muster/history"
	"muster/history/snapshot"
	"muster/internal/backupfile"
	"muster/jobs/queue/archive"
	"muster/jobs/queue/form"
	"muster/jobs/queue/keys"
	"muster/jobs/queue/vitals"
	"muster/jobs/queue/wipe"
)

// Made is the answer of backup create.
type Made struct {
	File         string    `json:"file"`
	Installation string    `json:"installation"`
	Made         time.Time `json:"made"`
	Zones        []string  `json:"zones"`
	Keys         int       `json:"keys"` // of Redis
	Rows         int       `json:"rows"` // of SQL
	Bytes        int64     `json:"bytes"`
	Seconds      float64   `json:"seconds"`
	// Paused is the longest time for which Redis did nothing else, at most.
	Paused float64 `json:"paused_seconds"`
	Quiet  bool    `json:"quiet"` // nobody worked with Redis
}

// newCreate makes the command backup create.
func newCreate(audit Audit) *cobra.Command {
	var to, paths []string
	var reason, output string
	c := &cobra.Command{
		Use:   "create FILE|-",
		Short: "Write all that Redis and SQL have into one encrypted file",
		Long: `create reads Redis and the database of the configuration while work goes on, and writes
one file, encrypted with age for the recipients. Each zone is read at one moment, and SQL
after it; for that moment Redis does nothing else, and the answer says how long it was.

The file has tasks, jobs, output, windows, schedules, tokens, stored contents, history
and the audit log. It has no file of this machine: keep copies of server.key, of the
folder trust, of configuration and inventory elsewhere. Without server.key a backup is
worth nothing: it proves that a server wrote it.

A new file gets mode 0600, and its name only once it is whole. "-" is standard output.
The audit log gets an entry. A server is not called. Where Redis has users, make one:
  redis-cli ACL SETUSER muster-backup on '>PASSWORD' \
    ` + keys.RuleLines(archive.ReadRules) + `

Exit codes: 0 the file is whole, 1 it is not, 2 wrong use.`,
		Example: `  age-keygen -o backup.key              # keep it where the backups are not
  muster backup create /backup/muster-monday --recipient age1…
  muster backup create - --recipients-file /etc/muster/recipients | ssh vault 'cat >m'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFile,
		Annotations:       map[string]string{cli.Offline: "yes"},
	}
	conf := reach.AddFileFlags(c)
	c.Flags().StringArrayVar(&to, "recipient", nil, "`recipient` of age who can read it; repeatable")
	c.Flags().StringArrayVar(&paths, "recipients-file", nil, "`file` of recipients; repeatable")
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	books.OutputFlag(c, &output)
	cli.CompleteFlagWith(c, "recipient", cobra.NoFileCompletions)
	cli.CompleteFlagWith(c, "reason", cobra.NoFileCompletions)
	c.RunE = func(c *cobra.Command, args []string) error {
		screen := cli.NewScreen(c)
		screen.JSON = output == cli.OutputJSON
		recipients, err := backupfile.ParseRecipients(to, paths)
		err = errors.Join(cli.CheckOutput(output), err)
		if args[0] == stream && screen.OutTerm {
			err = errors.Join(err, errors.New("standard output is a terminal: want a file, or a pipe"))
		}
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		p, done, err := placeOf(conf, audit)
		if err != nil {
			return err
		}
		defer done()
		m, err := p.create(c.Context(), recipients, target{args[0], screen.Out, reason})
		if err != nil {
			return cli.Exit(cli.ExitNotAll, fmt.Errorf("there is no backup: %w", err))
		}
		return m.write(screen)
	}
	return c
}

// stream stands for standard output.
const stream = "-"

// target names the place of a backup, and the reason for it.
type target struct {
	path   string
	out    io.Writer
	reason string
}

// create makes a backup, with entries in the audit log.
func (p place) create(ctx context.Context, to backupfile.Recipients, at target) (m Made,
	err error) {
	if err := p.foreign(ctx); err != nil {
		return m, err
	}
	end, err := p.audit(ctx, "installation.backup", at.reason)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, end(err)) }()
	from := time.Now()
	count := &counter{}
	write := func(w io.Writer) error {
		count.w = w
		return p.pack(ctx, count, to, &m)
	}
	if at.path == stream {
		err = write(at.out)
	} else {
		err = backupfile.Create(at.path, write)
	}
	m.File, m.Bytes, m.Seconds = at.path, count.n, time.Since(from).Seconds()
	return m, err
}

// counter counts bytes.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// pack writes a backup.
func (p place) pack(ctx context.Context, w io.Writer, to backupfile.Recipients, m *Made) error {
	h, err := p.head(ctx)
	if err != nil {
		return err
	}
	out, err := backupfile.NewWriter(w, to, p.vouch)
	if err != nil {
		return err
	}
	k := &packer{to: out}
	if err := k.json(backupfile.Head, h); err != nil {
		return err
	}
	copied, err := archive.New(p.redis).Read(ctx, k.record)
	if err != nil {
		return err
	}
	if err := snapshot.Read(ctx, history.HandleOf(p.store), k); err != nil {
		return err
	}
	if err := k.flush(); err != nil {
		return err
	}
	if err := k.json(partSummary, summary{copied.Zones, copied.Keys, k.n, copied.Pause}); err != nil {
		return err
	}
	*m = Made{Installation: h.Installation, Made: h.Made, Zones: copied.Zones, Keys: copied.Keys,
		Rows: k.n, Paused: copied.Pause.Seconds(), Quiet: h.Quiet}
	return out.Close()
}

// head says what the backup will be.
func (p place) head(ctx context.Context) (head, error) {
	h := head{Form: formNow, Version: cli.Version, Installation: p.keys.Installation(),
		Made: time.Now().UTC(), History: p.history, Least: form.Least}
	var err error
	// A history that is away would be noticed after all of Redis was read.
	if err = p.store.Migrate(ctx); err != nil {
		return h, err
	}
	if h.Tables, err = snapshot.Version(ctx, history.HandleOf(p.store)); err != nil {
		return h, err
	}
	servers, err := vitals.Read(ctx, p.redis)
	if err != nil {
		return h, err
	}
	for _, v := range servers {
		h.Redis = max(h.Redis, v.Version)
	}
	alive, err := wipe.New(p.redis).Alive(ctx, p.watch)
	h.Quiet = len(alive) == 0
	return h, err
}

// write shows what was made. A backup on standard output leaves no room for more there.
func (m Made) write(s *cli.Screen) error {
	if s.JSON && m.File != stream {
		return s.WriteJSON(m)
	}
	slices.Sort(m.Zones)
	s.Say("%s: %d keys of Redis (zones %s), %d rows of SQL, %.1f MB in %.1f s; Redis did nothing "+
		"else for at most %d ms", m.File, m.Keys, strings.Join(m.Zones, ", "), m.Rows,
		float64(m.Bytes)/1e6, m.Seconds, int(m.Paused*1000))
	if m.Quiet {
		s.Say("nobody worked with Redis")
	}
	return nil
}
