package books

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/submit"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// NewBlob makes the command blob.
func NewBlob() *cobra.Command {
	c := &cobra.Command{
		Use:   "blob",
		Short: "Store files for uploads, so that every node has them",
		Long: `A blob is a file that is stored under its SHA-256, for uploads that are too large for
a task. A runbook names it (upload: {blob: sha256:…}), or an argument of type file does
(--arg image=sha256:…). "muster run --arg-file" stores a large file by itself.

muster keeps a blob while a task that has not ended needs it, and for blobs.grace
afterwards.`,
		Example: `  muster blob put fw-7.4.bin
  muster blob ls
  muster blob get sha256:0f8e4a -f fw.bin
  muster blob rm sha256:0f8e4a`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBlobPut(), newBlobList(), newBlobGet(), newBlobRemove())
	return c
}

func newBlobPut() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:     "put FILE…",
		Short:   "Store files, and print their names; - is the standard input",
		Example: "  muster blob put fw-7.4.bin",
		Args:    cobra.MinimumNArgs(1),
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		list := []jobs.Blob{}
		for _, path := range args {
			f, err := submit.OpenBlobFile(ctx, path)
			if err != nil {
				return cli.Exit(cli.ExitUsage, err)
			}
			b, err := submit.PutBlob(ctx, s, f)
			f.Close()
			if err != nil {
				return err
			}
			list = append(list, b)
			if !s.JSON {
				if err := s.Write(scripts.BlobName(cli.Cell(b.SHA256)) + "\n"); err != nil {
					return err
				}
			}
		}
		if s.JSON {
			return s.WriteJSON(list)
		}
		return nil
	})
}

func newBlobList() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:               "ls",
		Aliases:           []string{"list"},
		Short:             "List the stored blobs, and the tasks that need them",
		Example:           "  muster blob ls\n  muster blob ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		l, err := listBlobs(ctx, s.Client)
		if err != nil {
			return err
		}
		g := cli.NewGrid("BLOB", ">SIZE", "NAME", "BY", "USED", "TASKS")
		for _, b := range l.Blobs {
			var tasks []string
			for _, t := range b.Tasks {
				tasks = append(tasks, cli.Cell(string(t)))
			}
			g.Add(scripts.BlobName(cli.Cell(b.SHA256)), remote.ByteCount(b.Size),
				cli.OrDash(cli.Cell(b.Name)),
				cli.OrDash(cli.Cell(b.By)), cli.Ago(b.Used, s.Now()), cli.OrDash(strings.Join(tasks, ",")))
		}
		if !s.JSON && len(l.Blobs) > 0 {
			s.Say("%s of %s are taken", remote.ByteCount(l.Size), remote.ByteCount(l.Max))
		}
		return s.List(l.Blobs, g, "nothing is stored: `muster blob put FILE` stores a file")
	})
}

func newBlobGet() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "get BLOB",
		Short: "Write a stored blob into a file or a pipe",
		Long: `The beginning of the name is enough, if it fits one blob only. A file appears when all
of it is there and its SHA-256 is right.`,
		Example: "  muster blob get sha256:0f8e4a -f fw.bin",
		Args:    cobra.ExactArgs(1),
	}
	c.Flags().StringVarP(&to, "file", "f", "", "`file` to write; without it the standard output")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if to == "" && s.OutTerm {
			return cli.Exit(cli.ExitUsage, errors.New(
				"a terminal is no place for it: say -f FILE, or pipe it"))
		}
		b, err := findBlob(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		if to == "" {
			return getBlob(ctx, s.Client, b, s.Out)
		}
		part, err := os.CreateTemp(filepath.Dir(to), ".muster-*.part")
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		defer os.Remove(part.Name()) // fails if all went well: the file was renamed
		if err := errors.Join(getBlob(ctx, s.Client, b, part), part.Close()); err != nil {
			return err
		}
		return os.Rename(part.Name(), to)
	})
}

func newBlobRemove() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:     "rm BLOB…",
		Aliases: []string{"remove"},
		Short:   "Remove stored blobs",
		Example: "  muster blob rm sha256:0f8e4a",
		Args:    cobra.MinimumNArgs(1),
	}
	c.Flags().BoolVar(&force, "force", false, "also if tasks need it: their jobs will fail")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		removed := []string{}
		for _, arg := range args {
			b, err := findBlob(ctx, s.Client, arg)
			if err != nil {
				return err
			}
			q := url.Values{}
			if force {
				q.Set("force", "true")
			}
			if err := s.Do(ctx, cli.Call{Method: http.MethodDelete, Path: submit.BlobPath(b.SHA256),
				Query: q,
				Bound: cli.CallTimeout}, nil); err != nil {
				return err
			}
			removed = append(removed, scripts.BlobName(b.SHA256))
		}
		if s.JSON {
			return s.WriteJSON(map[string][]string{"removed": removed})
		}
		return s.Write(cli.Cell(strings.Join(removed, " ")) + " removed\n")
	})
}

func listBlobs(ctx context.Context, c *cli.Client) (api.BlobList, error) {
	var l api.BlobList
	err := c.Get(ctx, "/v1/blobs", nil, &l)
	l.Blobs = cli.Filled(l.Blobs)
	return l, err
}

// findBlob returns the one blob whose name begins with a text.
func findBlob(ctx context.Context, c *cli.Client, name string) (jobs.Blob, error) {
	l, err := listBlobs(ctx, c)
	if err != nil {
		return jobs.Blob{}, err
	}
	begin := strings.ToLower(strings.TrimPrefix(name, "sha256:"))
	var found []jobs.Blob
	for _, b := range l.Blobs {
		if begin != "" && strings.HasPrefix(b.SHA256, begin) {
			found = append(found, b)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return jobs.Blob{}, cli.Exit(cli.ExitUsage, fmt.Errorf("no blob %q; `muster blob ls` lists them",
			name))
	}
	return jobs.Blob{}, cli.Exit(cli.ExitUsage, fmt.Errorf(
		"%q is the beginning of %d blobs: give more of "+
			"the name", name, len(found)))
}

// getBlob writes a content, and fails if its checksum is wrong.
func getBlob(ctx context.Context, c *cli.Client, b jobs.Blob, to io.Writer) error {
	bound := cli.SubmitTimeout + time.Duration(b.Size/submit.Slowest)*time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	r, err := c.Send(ctx, cli.Call{Method: http.MethodGet, Path: submit.BlobPath(b.SHA256),
		Bound: bound})
	if err != nil {
		return err
	}
	defer r.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), r.Body)
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != b.SHA256 {
		err = jobs.ErrBadBlob
	}
	if err != nil {
		return fmt.Errorf("%s came to %s of %s: %w", scripts.BlobName(b.SHA256), remote.ByteCount(n),
			remote.ByteCount(b.Size), err)
	}
	return nil
}
