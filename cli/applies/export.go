package applies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/fleet"
)

// NewExport makes the command export.
func NewExport() *cobra.Command {
	var kind, customer string
	c := &cobra.Command{
		Use:   "export [DIR]",
		Short: "Write what is in force as files of muster apply",
		Long: `export writes all entries in force as the files that muster apply reads: into a folder,
one file for each kind and customer, or to standard output. To apply them again is no
change. It replaces files of the same names, and removes none. What people ordered by
hand, such as a freeze, and what stands in files of the server is only reported.`,
		Example: `  muster export conf/
  muster export --kind window --customer acme > acme.yaml
  muster export -o json`,
		Args: cobra.MaximumNArgs(1),
	}
	c.Flags().StringVar(&kind, "kind", "", "only entries of this `kind`, such as window")
	c.Flags().StringVar(&customer, "customer", "", "only entries of this `customer`")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		q := url.Values{}
		for name, value := range map[string]string{"kind": kind, "customer": customer} {
			if value != "" {
				q.Set(name, value)
			}
		}
		var l api.EntryTexts
		if err := s.Get(ctx, "/v1/entries", q, &l); err != nil {
			return cli.RefusedUse(err)
		}
		for _, note := range l.Notes {
			s.Say("%s", cli.Cell(note))
		}
		if s.JSON {
			return s.WriteJSON(l)
		}
		written, err := layout(l.Entries)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return s.Write(stream(s, l.Entries))
		}
		if err := put(args[0], written); err != nil {
			return err
		}
		s.Say("entries: %d, in %s", len(l.Entries), cli.Count(len(written), "file"))
		return nil
	})
}

// stream returns entries as one file.
func stream(s *cli.Session, list []api.EntryText) string {
	var docs []string
	for _, e := range list {
		if e.Attached != nil {
			s.Say("%s %s names an iCalendar file, which standard output cannot have: name a folder",
				cli.Cell(e.Kind), cli.Cell(e.Name))
		}
		docs = append(docs, e.Document)
	}
	return strings.Join(docs, "---\n")
}

// layout returns the files of entries by their paths in a folder. A server may be a liar, so no
// name leads out of it.
func layout(list []api.EntryText) (map[string]string, error) {
	out := map[string]string{}
	for _, e := range list {
		names := []string{e.Kind, e.Name}
		if e.Customer != "" {
			names = append(names, e.Customer)
		}
		for _, name := range names {
			if err := fleet.CheckName(name); err != nil {
				return nil, fmt.Errorf("the answer of the server: %w", err)
			}
		}
		whose := e.Customer
		if whose == "" {
			whose = "_house"
		}
		path := filepath.Join(e.Kind+"s", whose+".yaml")
		if out[path] != "" {
			out[path] += "---\n"
		}
		out[path] += e.Document
		if e.Attached != nil {
			ics := filepath.Join(e.Kind+"s", filepath.FromSlash(e.Attached.Name))
			if !filepath.IsLocal(e.Attached.Name) {
				return nil, fmt.Errorf("the answer of the server: a file %q is not in the folder",
					cli.Cell(e.Attached.Name))
			}
			out[ics] = e.Attached.Content
		}
	}
	return out, nil
}

// put writes files into a folder. It follows no link out of it.
func put(folder string, list map[string]string) (err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, path := range slices.Sorted(maps.Keys(list)) {
		dir := ""
		for part := range strings.SplitSeq(filepath.ToSlash(filepath.Dir(path)), "/") {
			dir = filepath.Join(dir, part)
			if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		if err := root.WriteFile(path, []byte(list[path]), 0o644); err != nil {
			return err
		}
	}
	return nil
}
