package audits

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"muster/audit"
	"muster/cli"
	"muster/internal/files"
)

const (
	// lineMax bounds a line of an export.
	lineMax = 1 << 20 // bytes
	// fileMax bounds files of keys and checkpoints.
	fileMax = 1 << 30 // bytes
)

// trusted are the keys and checkpoints that a person brings along.
type trusted struct {
	keys        []string // texts, or files with one in each line
	checkpoints []string // files
}

func (v *trusted) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&v.keys, "key", nil,
		"public `key`, or a file of them; default: what the log says of itself")
}

// read returns the keys of the flags.
func (v trusted) read(ctx context.Context) (texts []string, err error) {
	for _, text := range v.keys {
		if strings.Contains(text, "+") {
			texts = append(texts, text)
			continue
		}
		data, err := files.ReadGiven(ctx, text, lineMax)
		if err != nil {
			return nil, cli.Exit(cli.ExitUsage, fmt.Errorf("--key: %w", err))
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				texts = append(texts, line)
			}
		}
	}
	return texts, nil
}

// believed returns the keys that an examination believes: those that a person gave, or those that
// the log names itself, about which a note is said.
func (v trusted) believed(ctx context.Context, s *cli.Session, own []string) (audit.Keys, error) {
	texts, err := v.read(ctx)
	if err != nil {
		return audit.Keys{}, err
	}
	if len(v.keys) == 0 {
		texts = own
		s.Say("the keys are those that the log names itself: with --key you bring your own, which " +
			"`muster audit status` has shown earlier")
	}
	keys, err := audit.ParseKeys(texts)
	if err != nil {
		return keys, cli.Exit(cli.ExitUsage, err)
	}
	return keys, nil
}

func newVerify() *cobra.Command {
	var v trusted
	c := &cobra.Command{
		Use:   "verify [EXPORT]",
		Short: "Examine the whole log, and name what was changed in it",
		Long: `verify reads the whole audit log from the server, or a file of muster audit export, and
examines it here: each entry has its signature and its place in the tree, nothing is
missing, and the log is the one that every checkpoint was signed for. It names entries
that were changed, deleted or inserted, and says if the newest were cut off, or if an
older copy of the tables was restored. Then it ends with exit code 1.

Whoever can write to the database can also restore all of it. Only a checkpoint from
outside shows that: give the files that audit.sinks wrote with --checkpoint.`,
		Example: `  muster audit verify --checkpoint /mnt/worm/audit.log --key audit.keys
  muster audit export > log.jsonl && muster audit verify log.jsonl --checkpoint audit.log`,
		Args: cobra.MaximumNArgs(1),
	}
	v.add(c)
	c.Flags().StringArrayVar(&v.checkpoints, "checkpoint", nil,
		"`file` with signed checkpoints from outside; can be given several times")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		from, err := openLog(ctx, s, args)
		if err != nil {
			return err
		}
		defer from.Close()
		r, err := v.examine(ctx, s, from)
		if err != nil {
			return err
		}
		if s.JSON {
			err = s.WriteJSON(r)
		} else {
			err = s.Write(words(r))
		}
		if err == nil && !r.Whole() {
			return cli.ExitWith(cli.ExitNotAll)
		}
		return err
	})
}

// openLog opens an export: a file, or that of the server.
func openLog(ctx context.Context, s *cli.Session, args []string) (io.ReadCloser, error) {
	if len(args) == 0 {
		r, err := s.Send(ctx, cli.Call{Method: http.MethodGet, Path: "/v1/audit/export"})
		if err != nil {
			return nil, err
		}
		return r.Body, nil
	}
	f, _, err := files.OpenGiven(ctx, args[0])
	if err != nil {
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	return f, nil
}

// errCut says that an export has no last line.
var errCut = errors.New("the export broke off: it lacks its last line, so nothing can be said of " +
	"the log; export it again")

// examine reads an export line by line.
func (v trusted) examine(ctx context.Context, s *cli.Session, from io.Reader) (audit.Report,
	error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, lineMax)
	var x *audit.Examiner
	var h audit.Header
	var n int64
	for number := 1; lines.Scan(); number++ {
		l, err := audit.ParseLine(lines.Bytes())
		switch {
		case err != nil:
			return audit.Report{}, fmt.Errorf("export: line %d: %w", number, err)
		case (x == nil) != (l.Log != nil):
			return audit.Report{}, fmt.Errorf("export: line %d: the first line and no other is the "+
				"header", number)
		case l.Log != nil:
			if x, err = v.begin(ctx, s, *l.Log); err != nil {
				return audit.Report{}, err
			}
			h = *l.Log
		case l.Checkpoint != "":
			x.Checkpoint(audit.FromTables, l.Checkpoint)
		case l.Entry != nil:
			n++
			x.Entry(*l.Entry)
		case l.End.Entries != n:
			return audit.Report{}, fmt.Errorf("export: line %d: it says %d entries, and %d came", number,
				l.End.Entries, n)
		default:
			return x.Finish(h), nil
		}
	}
	return audit.Report{}, errors.Join(errCut, lines.Err())
}

// begin returns an examiner with the checkpoints that a person has brought along.
func (v trusted) begin(ctx context.Context, s *cli.Session, h audit.Header) (*audit.Examiner,
	error) {
	keys, err := v.believed(ctx, s, h.Keys)
	if err != nil {
		return nil, err
	}
	if keys.None() {
		s.Say("no key is known, so signatures and checkpoints cannot be checked: the log is compared " +
			"with its own hashes only")
	}
	x := audit.NewExaminer(keys)
	for _, path := range v.checkpoints {
		data, err := files.ReadGiven(ctx, path, fileMax)
		if err != nil {
			return nil, cli.Exit(cli.ExitUsage, fmt.Errorf("--checkpoint: %w", err))
		}
		if n := outside(x, path, string(data)); n == 0 {
			return nil, cli.Exit(cli.ExitUsage, fmt.Errorf("--checkpoint %s: it has no checkpoint", path))
		}
	}
	return x, nil
}

// outside gives an examiner the checkpoints and entries of a file: lines as a sink gets them, also
// with something before the JSON as a syslog writes it, or notes as they are signed. It returns how
// many there are.
func outside(x *audit.Examiner, path, text string) (n int) {
	if !strings.Contains(text, `{"`) {
		for _, note := range audit.SplitNotes(text) {
			x.Checkpoint(path, note)
			n++
		}
		return n
	}
	for line := range strings.Lines(text) {
		at := strings.Index(line, `{"`)
		if at < 0 {
			continue
		}
		// A line that a crash has cut is followed by the same again.
		l, err := audit.ParseLine([]byte(strings.TrimSpace(line[at:])))
		switch {
		case err != nil:
		case l.Checkpoint != "":
			x.Checkpoint(path, l.Checkpoint)
			n++
		case l.Entry != nil:
			x.Copy(path, *l.Entry)
			n++
		}
	}
	return n
}

// words describes a report.
func words(r audit.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s\n", strings.ToUpper(f.Kind), cli.Cell(f.Words))
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "and %s that are not listed\n", cli.Count(r.More, "finding"))
	}
	fmt.Fprintf(&b, "entries: %d", r.Entries)
	if r.Unsigned > 0 {
		fmt.Fprintf(&b, ", %d of them not signed: from before there was a key", r.Unsigned)
	}
	if r.Erased > 0 {
		fmt.Fprintf(&b, "; %s erased, as the log says", cli.Count(r.Erased, "name"))
	}
	fmt.Fprintf(&b, "\n%s fit", cli.Count(r.Checkpoints, "checkpoint"))
	if r.Newest != "" {
		fmt.Fprintf(&b, ", the newest of %s", r.Newest)
	}
	if r.Uncovered > 0 {
		fmt.Fprintf(&b, "; the last %d entries have none yet", r.Uncovered)
	}
	if r.Whole() {
		return b.String() + "\nthe log is whole\n"
	}
	return b.String() + "\nthe log was changed\n"
}
