package intake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"slices"

	"muster/api"
	"muster/jobs"
	"muster/scripts"
)

// Blobs keeps contents that are too large for a task. Blob's error wraps jobs.ErrNoBlob if there is
// no such content.
type Blobs interface {
	PutBlob(ctx context.Context, b jobs.Blob, most int64, content io.Reader) (jobs.Blob, error)
	Blob(ctx context.Context, sum string) (jobs.Blob, error)
}

// Files keeps the files of submits.
type Files struct {
	Blobs Blobs
	Max   int64 // bytes of a content
}

// Keep makes blobs of those files of a submit that are too large for a task, and finds
// out the sizes of all blobs that it names.
func (f Files) Keep(ctx context.Context, b api.Submit, catalog *scripts.Catalog, by string) (
	api.Submit, map[string]int64, error) {
	runbook, err := catalog.Lookup(b.Runbook)
	if err != nil {
		return b, nil, nil // that is a mistake of its own
	}
	stored := map[string]int64{}
	args, files := map[string]string{}, map[string][]byte{}
	maps.Copy(args, b.Args)
	for name, content := range b.Files {
		_, twice := args[name]
		if twice || len(content) <= scripts.InlineMax || !takesFile(runbook, name) {
			files[name] = content
			continue
		}
		raw := sha256.Sum256(content)
		blob := jobs.Blob{SHA256: hex.EncodeToString(raw[:]), Size: int64(len(content)), Name: name,
			By: by}
		args[name], stored[blob.SHA256] = scripts.BlobName(blob.SHA256), blob.Size
		if b.DryRun {
			continue
		}
		_, err := f.Blobs.PutBlob(ctx, blob, f.Max, bytes.NewReader(content))
		if err != nil {
			return b, nil, err
		}
	}
	b.Args, b.Files = args, files
	return b, stored, f.sizes(ctx, runbook, b, stored)
}

func takesFile(r *scripts.Runbook, name string) bool {
	return slices.ContainsFunc(r.Arguments, func(a scripts.Argument) bool {
		return a.Name == name && a.Type == scripts.TypeFile
	})
}

// sizes finds out how large the blobs are that a submit names; those that are not there
// are left out. A dry run takes those of its arguments for there: the caller may be
// about to store them.
func (f Files) sizes(ctx context.Context, r *scripts.Runbook, b api.Submit,
	stored map[string]int64) error {
	ofSteps := r.Blobs(nil)
	for _, sum := range r.Blobs(b.Args) {
		if _, known := stored[sum]; known {
			continue
		}
		there, err := f.Blobs.Blob(ctx, sum)
		missing := errors.Is(err, jobs.ErrNoBlob)
		switch {
		case err != nil && !missing:
			return err
		case !missing, b.DryRun && !slices.Contains(ofSteps, sum):
			stored[sum] = there.Size
		}
	}
	return nil
}
