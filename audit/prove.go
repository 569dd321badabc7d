package audit

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// HashTexts returns hashes as texts.
func HashTexts(list []Hash) []string {
	out := make([]string, len(list))
	for i, h := range list {
		out[i] = h.String()
	}
	return out
}

func parseHashes(texts []string) ([]Hash, error) {
	out := make([]Hash, len(texts))
	for i, text := range texts {
		var err error
		if out[i], err = tlog.ParseHash(text); err != nil {
			return nil, fmt.Errorf("hash %d of the proof: %w", i+1, err)
		}
	}
	return out, nil
}

// Check returns the entry of a proof and the checkpoint that has it, or why the proof
// does not hold under these keys.
func (p Proof) Check(keys Keys) (Entry, Checkpoint, error) {
	c, err := keys.Open(p.Checkpoint)
	if err != nil {
		return Entry{}, c, err
	}
	e, err := Parse([]byte(p.Entry.Leaf))
	if err != nil {
		return e, c, err
	}
	path, err := parseHashes(p.Hashes)
	if err != nil {
		return e, c, err
	}
	if e.Seq != p.Entry.Seq || e.Seq >= c.Size {
		return e, c, fmt.Errorf("the leaf is of entry %d, the proof of entry %d of %d", e.Seq,
			p.Entry.Seq, c.Size)
	}
	leaf := LeafHash([]byte(p.Entry.Leaf))
	err = tlog.CheckRecord(tlog.RecordProof(path), c.Size, c.Root, e.Seq, leaf)
	if err != nil {
		return e, c, fmt.Errorf("the hashes do not lead from the entry to the checkpoint: %w", err)
	}
	return e, c, p.Entry.fits(e)
}

// fits reports the parts beside a leaf that do not fit the commitments in it. Parts that are
// missing fit: they were erased, or left out.
func (r Record) fits(e Entry) error {
	var errs []error
	if p := r.Person; p != nil && !p.Erased() && (p.Ref != e.Who || !p.Fits()) {
		errs = append(errs, fmt.Errorf("the name %q is not the one that the entry refers to",
			Clean(p.Name, textMax)))
	}
	left := r.Salt == "" && r.Private == (Private{})
	if !left && r.Private.Commitment(r.Salt) != e.Said {
		errs = append(errs, errors.New("address and reason are not those of the entry"))
	}
	return errors.Join(errs...)
}

// Check returns both checkpoints, or why the proof does not hold under these keys.
func (g Growing) Check(keys Keys) (older, newer Checkpoint, err error) {
	if older, err = keys.Open(g.Older); err != nil {
		return older, newer, fmt.Errorf("the older: %w", err)
	}
	if newer, err = keys.Open(g.Newer); err != nil {
		return older, newer, fmt.Errorf("the newer: %w", err)
	}
	path, err := parseHashes(g.Hashes)
	if err != nil {
		return older, newer, err
	}
	switch {
	case older.Origin != newer.Origin:
		err = fmt.Errorf("the checkpoints are of two logs: %q and %q", older.Origin, newer.Origin)
	case older.Size == 0: // every log begins so
	case older.Size > newer.Size:
		err = fmt.Errorf("the older has %d entries, the newer %d", older.Size, newer.Size)
	default:
		err = tlog.CheckTree(tlog.TreeProof(path), newer.Size, newer.Root, older.Size, older.Root)
	}
	if err != nil {
		err = fmt.Errorf("the newer log does not begin as the older one did: %w", err)
	}
	return older, newer, err
}
