package audit

import (
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

func TestAnEntryHasOneFormOfBytes(t *testing.T) {
	t.Parallel()
	b := filled(t, 1)
	leaf := b.records[0].Leaf
	want := `{"v":1,"seq":0,"id":"` + digest("id0")[:32] + `","at":"2026-03-01T12:00:00.123456Z",` +
		`"kind":"order","who":"` + b.people["os:alice"].Ref + `","proof":"socket","verb":"task.submit",` +
		`"object":"task/0","said":"`
	if !strings.HasPrefix(leaf, want) {
		t.Fatalf("leaf:\n%s\nwant a beginning:\n%s", leaf, want)
	}
	e, err := Parse([]byte(leaf))
	if err != nil || e.Object != "task/0" {
		t.Fatal(e, err)
	}
	for name, other := range map[string]string{
		"a blank":           strings.Replace(leaf, ":", ": ", 1),
		"another order":     `{"seq":0,"v":1,` + strings.TrimPrefix(leaf, `{"v":1,"seq":0,`),
		"an unknown field":  strings.Replace(leaf, `"kind"`, `"more":1,"kind"`, 1),
		"an escape":         strings.Replace(leaf, "task.submit", `task\u002esubmit`, 1),
		"something behind":  leaf + "{}",
		"a line end":        leaf + "\n",
		"nanoseconds":       strings.Replace(leaf, ".123456Z", ".1234567Z", 1),
		"another zone":      strings.Replace(leaf, ".123456Z", ".123456+01:00", 1),
		"a field twice":     strings.Replace(leaf, `"seq":0`, `"seq":0,"seq":0`, 1),
		"another kind":      strings.Replace(leaf, `"order"`, `"orders"`, 1),
		"no verb":           strings.Replace(leaf, "task.submit", "", 1),
		"a negative number": strings.Replace(leaf, `"seq":0`, `"seq":-1`, 1),
		"nothing":           "",
		"no object":         "[]",
		"much":              strings.Replace(leaf, "task/0", strings.Repeat("x", leafMax), 1),
	} {
		if e, err := Parse([]byte(other)); err == nil {
			t.Errorf("%s is accepted: %+v", name, e)
		}
	}
}

func TestTextsOfAnEntryAreBoundedAndHaveNoSecretOfAToken(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain":                                  "plain",
		"two\nlines\x00\x7f\u2028":               "two?lines???",
		"\xff":                                   "?",
		"mst_k3f9x2qa_AAAAAAAAAAAAAAAAAAAAAAAA!": "mst_[left out]!",
		"token muster_0123456789abcdefABCDEF-_ and muster_x": "token muster_[left out] and muster_x",
		"mst_short":              "mst_short",
		strings.Repeat("ä", 200): strings.Repeat("ä", 100),
	} {
		if got := Clean(text, textMax); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAReferenceHidesANameThatWasErased(t *testing.T) {
	t.Parallel()
	p := NewPerson("os:alice", digest("a"))
	other := NewPerson("os:alice", digest("b"))
	if p.Ref == other.Ref {
		t.Error("two salts make one reference: who guesses a name could check it")
	}
	if !p.Fits() || p.Erased() {
		t.Errorf("%+v does not fit", p)
	}
	gone := Person{Ref: p.Ref}
	if gone.Fits() || !gone.Erased() {
		t.Errorf("%+v fits", gone)
	}
	changed := p
	changed.Name = "os:bob"
	if changed.Fits() {
		t.Error("another name fits")
	}
}

// The tree that grows by stored hashes, the edge and the library agree, and proofs hold.
func TestTheTreeIsThatOfRFC6962(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var stored, roots []Hash
		read := HashReader(func(places []int64) ([]Hash, error) {
			out := make([]Hash, len(places))
			for i, p := range places {
				out[i] = stored[p]
			}
			return out, nil
		})
		var edge Edge
		var leaves []Hash
		roots = append(roots, edge.Root())
		for batch := range rapid.IntRange(1, 12).Draw(t, "batches") {
			g := Grow(int64(len(leaves)), read)
			for range rapid.IntRange(1, 9).Draw(t, "entries") {
				leaf := LeafHash([]byte{byte(batch), byte(len(leaves))})
				if err := g.Add(leaf); err != nil {
					t.Fatal(err)
				}
				leaves = append(leaves, leaf)
				edge.Add(leaf)
				roots = append(roots, edge.Root())
			}
			stored = append(stored, g.New...)
		}
		size := int64(len(leaves))
		if HashCount(size) != int64(len(stored)) {
			t.Fatalf("%d hashes, want %d", len(stored), HashCount(size))
		}
		for n := range size + 1 {
			if h, err := Root(n, read); err != nil || h != roots[n] {
				t.Fatalf("root of %d: %v, %v, want %v", n, h, err, roots[n])
			}
		}
		n := rapid.Int64Range(0, size-1).Draw(t, "entry")
		proof, err := Inclusion(size, n, read)
		if err != nil || tlog.CheckRecord(proof, size, roots[size], n, leaves[n]) != nil {
			t.Fatalf("inclusion of %d in %d: %v", n, size, err)
		}
		grown, err := Consistency(size, n+1, read)
		if err != nil || tlog.CheckTree(grown, size, roots[size], n+1, roots[n+1]) != nil {
			t.Fatalf("consistency of %d with %d: %v", n+1, size, err)
		}
	})
}

func TestACheckpointIsANoteThatItsKeyOpens(t *testing.T) {
	t.Parallel()
	b := filled(t, 10)
	signed := b.points[0]
	c, err := keysOf(t, signerOf(t, 1)).Open(signed)
	if err != nil || c.Size != 10 || c.Root != b.root(t) {
		t.Fatal(c, err)
	}
	if _, err := keysOf(t, signerOf(t, 2)).Open(signed); err == nil {
		t.Error("another key opens it")
	}
	if _, err := (Keys{}).Open(signed); err == nil {
		t.Error("no key opens it")
	}
	both := keysOf(t, signerOf(t, 2), signerOf(t, 1))
	if _, err := both.Open(signed); err != nil {
		t.Errorf("during a rotation: %v", err)
	}
	for _, wrong := range []string{"", "x", strings.Replace(signed, "\n10\n", "\n11\n", 1), signed[:len(signed)-2],
		strings.Replace(signed, "at 2026", "at 2027", 1)} {
		if _, err := both.Open(wrong); err == nil {
			t.Errorf("it opens %q", wrong)
		}
	}
}

func TestASignatureOfOneThingIsNoneOfAnother(t *testing.T) {
	t.Parallel()
	s := signerOf(t, 1)
	c := Checkpoint{Origin: s.Origin(), Size: 1, At: TimeOf(begin)}
	sig, err := s.Entry([]byte(c.Text()))
	if err != nil {
		t.Fatal(err)
	}
	k := keysOf(t, s)
	if !k.Signed([]byte(c.Text()), sig) {
		t.Fatal("the signature does not hold")
	}
	raw, _ := s.sign([]byte(c.Text()))
	if k.Signed([]byte(c.Text()), string(raw)) {
		t.Error("the signature of a note passes for that of an entry")
	}
}

func TestNotesOfAFileAreTakenApart(t *testing.T) {
	t.Parallel()
	b := filled(t, 30)
	for _, between := range []string{"", "\n", "\n\n"} {
		got := SplitNotes(strings.Join(b.points, between))
		if !slices.Equal(got, b.points) {
			t.Errorf("with %q between them: %q", between, got)
		}
	}
}

func TestAProofHoldsWithoutTheLog(t *testing.T) {
	t.Parallel()
	b := filled(t, 20)
	keys := keysOf(t, b.signer)
	for seq := range int64(20) {
		path, err := Inclusion(20, seq, b.read)
		if err != nil {
			t.Fatal(err)
		}
		p := Proof{Entry: b.records[seq], Checkpoint: b.points[1], Hashes: HashTexts(path)}
		if e, c, err := p.Check(keys); err != nil || e.Seq != seq || c.Size != 20 {
			t.Fatalf("entry %d: %v", seq, err)
		}
		other := p
		other.Entry.Leaf = b.records[(seq+1)%20].Leaf
		if _, _, err := other.Check(keys); err == nil {
			t.Errorf("entry %d: a proof of another entry holds", seq)
		}
		other = p
		other.Entry.Private.Reason = "another"
		if _, _, err := other.Check(keys); err == nil {
			t.Errorf("entry %d: another reason fits", seq)
		}
		if _, _, err := p.Check(keysOf(t, signerOf(t, 2))); err == nil {
			t.Errorf("entry %d: it holds under another key", seq)
		}
	}
	path, err := Consistency(20, 10, b.read)
	if err != nil {
		t.Fatal(err)
	}
	g := Growing{Older: b.points[0], Newer: b.points[1], Hashes: HashTexts(path)}
	if o, n, err := g.Check(keys); err != nil || o.Size != 10 || n.Size != 20 {
		t.Fatal(o, n, err)
	}
	if _, _, err := (Growing{Older: b.points[1], Newer: b.points[0], Hashes: g.Hashes}).Check(keys); err == nil {
		t.Error("a log that became shorter passes")
	}
	fork := filled(t, 9)
	fork.add(t, fork.draft("os:mallory", "task.submit", "task/other"))
	forked := Growing{Older: fork.checkpoint(t), Newer: b.points[1], Hashes: g.Hashes}
	if _, _, err := forked.Check(keys); err == nil {
		t.Error("another log passes for the beginning of this one")
	}
}

func FuzzEntry(f *testing.F) {
	b := filled(f, 2)
	f.Add([]byte(b.records[0].Leaf))
	f.Add([]byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Parse(data)
		if err != nil {
			return
		}
		again, err := e.Leaf()
		if err != nil || string(again) != string(data) {
			t.Fatalf("%q becomes %q, %v", data, again, err)
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(Checkpoint{Origin: "muster-audit/x", Size: 3, At: TimeOf(begin)}.Text())
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseCheckpoint(text); err == nil && c.Text() != text {
			t.Fatalf("%q becomes %q", text, c.Text())
		}
		var all strings.Builder
		for _, n := range SplitNotes(text) {
			all.WriteString(n)
		}
		if len(all.String()) > len(text) {
			t.Fatal("it has grown")
		}
	})
}

func FuzzKeys(f *testing.F) {
	f.Add(signerOf(f, 1).VerifierKey())
	f.Fuzz(func(_ *testing.T, text string) {
		k, _ := ParseKeys([]string{text})
		k.Signed([]byte("x"), text)
	})
}

func FuzzLine(f *testing.F) {
	b := filled(f, 1)
	line, _ := json.Marshal(Line{Entry: &b.records[0]})
	f.Add(line)
	f.Add([]byte(`{"log":{"form":1}}`))
	draft, _ := b.draft("os:alice", "task.submit", "task/1").Line()
	f.Add(draft)
	f.Fuzz(func(t *testing.T, data []byte) {
		if l, err := ParseLine(data); err == nil && l.Entry != nil {
			x := NewExaminer(keysOf(t, signerOf(t, 1)))
			x.Entry(*l.Entry)
			x.Finish(Header{Size: 1})
		}
		if d, err := ParseDraft(data); err == nil {
			if _, _, err := d.Place(7, Person{}); err != nil && d.Entry.Kind != KindOutcome {
				t.Fatalf("a draft that was read has no place: %v", err)
			}
		}
	})
}

func TestKeysOfAServerCheckAlsoWhatItSignedBeforeARotation(t *testing.T) {
	t.Parallel()
	older, newer := signerOf(t, 1), signerOf(t, 2)
	keys, err := NewKeys(older.Origin(), []ed25519.PublicKey{newer.pub, older.pub})
	if err != nil || !slices.Equal(keys.Texts(), []string{newer.VerifierKey(), older.VerifierKey()}) {
		t.Fatal(keys.Texts(), err)
	}
	b := newBook(older)
	for i := range 20 {
		if i == 10 {
			b.signer = newer
		}
		b.add(t, b.draft("os:alice", "task.submit", "task/1"))
		if i%5 == 4 {
			b.checkpoint(t)
		}
	}
	if r := b.examine(keys, b.header(t)); !r.Whole() || r.Checkpoints != 4 {
		t.Errorf("%+v", r)
	}
	if r := b.examine(keysOf(t, newer), b.header(t)); r.Whole() {
		t.Error("without the older key nobody can say who signed the beginning")
	}
}
