package audits

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/audit"
	"muster/cli"
	"muster/internal/files"
)

func newExport() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "export",
		Short: "Write the whole log, a line of JSON each",
		Long: `export writes the audit log as lines of JSON: a header, all signed checkpoints, all
entries in their order with what stands beside them, and a last line. An auditor can
examine it elsewhere, with muster audit verify FILE or as docs/AUDIT.md says.`,
		Example: `  muster audit export > log.jsonl
  muster audit export | jq -r 'select(.entry).entry.leaf'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		r, err := s.Send(ctx, cli.Call{Method: http.MethodGet, Path: "/v1/audit/export"})
		if err != nil {
			return err
		}
		defer r.Body.Close()
		lines := bufio.NewScanner(r.Body)
		lines.Buffer(nil, lineMax)
		for lines.Scan() {
			l, err := audit.ParseLine(lines.Bytes())
			if err != nil {
				return fmt.Errorf("export: %w", err)
			}
			if err := s.Write(cli.EscapeJSON(lines.Bytes()) + "\n"); err != nil {
				return err
			}
			if l.End != nil {
				return nil
			}
		}
		return errors.Join(errCut, lines.Err())
	})
}

func newProve() *cobra.Command {
	var v trusted
	since, check := "", ""
	c := &cobra.Command{
		Use:   "prove [ENTRY]",
		Short: "Prove that an entry is in the log, or that the log only grew",
		Long: `prove writes a proof as JSON: that an entry is in the log of a signed checkpoint, or with
--since that the log of today begins as an older checkpoint says. A proof holds by
itself: who has it needs neither the log nor this server. With --check the command
checks a proof, and shows what it proves.`,
		Example: `  muster audit prove 1205 > proof.json
  muster audit prove --check proof.json --key audit.keys
  muster audit prove --since last-year.checkpoint > grown.json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	v.add(c)
	c.Flags().StringVar(&since, "since", "", "`file` with an older signed checkpoint")
	c.Flags().StringVar(&check, "check", "", "`file` with a proof to check")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		given := 0
		for _, is := range []bool{len(args) == 1, since != "", check != ""} {
			if is {
				given++
			}
		}
		switch {
		case given != 1:
			return cli.Exit(cli.ExitUsage, errors.New("want one of: the number of an entry, --since FILE, "+
				"--check FILE"))
		case check != "":
			return v.check(ctx, s, check)
		case since != "":
			return v.grown(ctx, s, since)
		}
		seq, err := entryArg(args[0])
		if err != nil {
			return err
		}
		var p audit.Proof
		if err := s.Get(ctx, fmt.Sprintf("/v1/audit/entries/%d/proof", seq), nil, &p); err != nil {
			return err
		}
		return s.WriteJSON(p)
	})
}

// grown writes the proof that the log grew since a checkpoint: the last one of a file.
func (v trusted) grown(ctx context.Context, s *cli.Session, path string) error {
	data, err := files.ReadGiven(ctx, path, fileMax)
	if err != nil {
		return cli.Exit(cli.ExitUsage, fmt.Errorf("--since: %w", err))
	}
	note := lastNote(string(data))
	size := sizeOf(note)
	if size < 1 {
		return cli.Exit(cli.ExitUsage, fmt.Errorf("--since %s: it has no signed checkpoint", path))
	}
	var g audit.Growing
	q := url.Values{"from": {strconv.FormatInt(size, 10)}}
	if err := s.Get(ctx, "/v1/audit/growth", q, &g); err != nil {
		return err
	}
	g.Older = note
	return s.WriteJSON(g)
}

// lastNote returns the last checkpoint of a file: of a sink, or of notes.
func lastNote(text string) (note string) {
	if !strings.Contains(text, `{"`) {
		for _, note = range audit.SplitNotes(text) {
		}
		return note
	}
	for line := range strings.Lines(text) {
		at := strings.Index(line, `{"`)
		if at < 0 {
			continue
		}
		if l, err := audit.ParseLine([]byte(strings.TrimSpace(line[at:]))); err == nil &&
			l.Checkpoint != "" {
			note = l.Checkpoint
		}
	}
	return note
}

// sizeOf returns the size that a checkpoint says; 0: it is none. Its signature is checked with the
// proof.
func sizeOf(note string) int64 {
	text, _, found := strings.Cut(note, "\n\n")
	if c, err := audit.ParseCheckpoint(text + "\n"); found && err == nil {
		return c.Size
	}
	return 0
}

// check checks a proof of a file.
func (v trusted) check(ctx context.Context, s *cli.Session, path string) error {
	data, err := files.ReadGiven(ctx, path, lineMax)
	if err != nil {
		return cli.Exit(cli.ExitUsage, fmt.Errorf("--check: %w", err))
	}
	var p audit.Proof
	var g audit.Growing
	switch {
	case strictly(data, &p) == nil && p.Entry.Leaf != "":
		return v.checkEntry(ctx, s, p)
	case strictly(data, &g) == nil && g.Older != "":
		return v.checkGrowth(ctx, s, g)
	}
	return cli.Exit(cli.ExitUsage, fmt.Errorf("--check %s: it is no proof of `muster audit prove`",
		path))
}

func strictly(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

func (v trusted) checkEntry(ctx context.Context, s *cli.Session, p audit.Proof) error {
	keys, err := v.believed(ctx, s, p.Keys)
	if err != nil {
		return err
	}
	e, c, err := p.Check(keys)
	if err != nil {
		return cli.Exit(cli.ExitNotAll, fmt.Errorf("the proof does not hold: %w", err))
	}
	if s.JSON {
		return s.WriteJSON(map[string]any{"holds": true, "entry": e, "checkpoint": map[string]any{
			"origin": c.Origin, "size": c.Size, "at": c.At}})
	}
	name := e.Who
	if p.Entry.Person != nil && p.Entry.Person.Name != "" {
		name = p.Entry.Person.Name
	}
	return s.Write(fmt.Sprintf("the proof holds: entry %d is in the log of %d entries that was "+
		"signed at %s\n%s\n", e.Seq, c.Size, moment(c.At),
		cli.Details([2]string{"time", moment(e.At)},
			[2]string{"who", cli.Cell(name)}, [2]string{"verb", cli.Cell(e.Verb)},
			[2]string{"object", cli.Cell(e.Object)}, [2]string{"log", cli.Cell(c.Origin)})))
}

func (v trusted) checkGrowth(ctx context.Context, s *cli.Session, g audit.Growing) error {
	keys, err := v.believed(ctx, s, g.Keys)
	if err != nil {
		return err
	}
	older, newer, err := g.Check(keys)
	if err != nil {
		return cli.Exit(cli.ExitNotAll, fmt.Errorf("the proof does not hold: %w", err))
	}
	if s.JSON {
		return s.WriteJSON(map[string]any{"holds": true, "older": older.Size, "newer": newer.Size})
	}
	return s.Write(fmt.Sprintf("the proof holds: the log of %d entries of %s begins as that of %d "+
		"of %s\n", newer.Size, moment(newer.At), older.Size, moment(older.At)))
}

// moment writes an instant of a proof.
func moment(t audit.Time) string { return t.UTC().Format(time.RFC3339) }
