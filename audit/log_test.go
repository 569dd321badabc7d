package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"time"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// signerOf returns a Signer whose key is made of a number.
func signerOf(t testing.TB, n byte) *Signer {
	t.Helper()
	seed := sha256.Sum256([]byte{n})
	s, err := NewSigner(Origin("0123456789abcdef0123456789abcdef"), ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keysOf(t testing.TB, list ...*Signer) Keys {
	t.Helper()
	var texts []string
	for _, s := range list {
		texts = append(texts, s.VerifierKey())
	}
	k, err := ParseKeys(texts)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func digest(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// book is a log as tables keep it.
type book struct {
	signer  *Signer // nil: none
	records []Record
	hashes  []Hash
	people  map[string]*Person
	points  []string
	made    *int // drafts, so that no two have one id
}

func newBook(s *Signer) *book { return &book{signer: s, people: map[string]*Person{}, made: new(int)} }

func (b *book) read(places []int64) ([]Hash, error) {
	out := make([]Hash, len(places))
	for i, p := range places {
		if p >= int64(len(b.hashes)) {
			return nil, fmt.Errorf("place %d of %d", p, len(b.hashes))
		}
		out[i] = b.hashes[p]
	}
	return out, nil
}

func (b *book) draft(who, verb, object string) Draft {
	n := len(b.records)
	*b.made++
	return Draft{Name: who, Salt: digest(fmt.Sprint("salt", n)), NewName: digest(fmt.Sprint("name", n)),
		Entry: Entry{ID: digest(fmt.Sprint("id", *b.made-1))[:32], At: TimeOf(begin.Add(time.Duration(n) * time.Second)),
			Kind: KindOrder, Verb: verb, Object: object, Proof: "socket"},
		Private: Private{From: "10.0.0.7", Reason: fmt.Sprintf("reason %d", n)}}.Cleaned()
}

func (b *book) add(t testing.TB, d Draft) Record {
	t.Helper()
	p := b.people[d.Name]
	if p == nil {
		made := NewPerson(d.Name, d.NewName)
		p = &made
		b.people[d.Name] = p
	}
	r, _, err := d.Place(int64(len(b.records)), *p)
	if err != nil {
		t.Fatal(err)
	}
	r.Person = p
	if b.signer != nil {
		if r.Signature, err = b.signer.Entry([]byte(r.Leaf)); err != nil {
			t.Fatal(err)
		}
	}
	g := Grow(int64(len(b.records)), b.read)
	if err := g.Add(LeafHash([]byte(r.Leaf))); err != nil {
		t.Fatal(err)
	}
	b.hashes = append(b.hashes, g.New...)
	b.records = append(b.records, r)
	return r
}

func (b *book) root(t testing.TB) Hash {
	t.Helper()
	return b.rootOf(t, len(b.records))
}

// rootOf returns the root of the first entries.
func (b *book) rootOf(t testing.TB, size int) Hash {
	t.Helper()
	h, err := Root(int64(size), b.read)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// checkpoint signs the log as it is, and keeps that beside it.
func (b *book) checkpoint(t testing.TB) string {
	t.Helper()
	text, err := b.signer.Checkpoint(Checkpoint{b.signer.Origin(), int64(len(b.records)), b.root(t),
		TimeOf(begin.Add(time.Duration(len(b.records)) * time.Minute))})
	if err != nil {
		t.Fatal(err)
	}
	b.points = append(b.points, text)
	return text
}

func (b *book) header(t testing.TB) Header {
	return Header{Form: FormOfExports, Size: int64(len(b.records)), Root: b.root(t).String()}
}

// examine reads the log with keys, and with checkpoints from a file.
func (b *book) examine(keys Keys, h Header, file ...string) Report {
	x := NewExaminer(keys)
	for _, p := range b.points {
		x.Checkpoint(FromTables, p)
	}
	for _, p := range file {
		x.Checkpoint("checkpoints.txt", p)
	}
	for _, r := range b.records {
		x.Entry(r)
	}
	return x.Finish(h)
}

// filled returns a log of so many entries with a checkpoint behind every tenth.
func filled(t testing.TB, n int) *book {
	t.Helper()
	b := newBook(signerOf(t, 1))
	for i := range n {
		b.add(t, b.draft([]string{"os:alice", "os:bob"}[i%2], "task.submit", fmt.Sprintf("task/%d", i)))
		if i%10 == 9 {
			b.checkpoint(t)
		}
	}
	return b
}
