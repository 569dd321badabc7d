package audit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestALogThatNobodyTouchedIsWhole(t *testing.T) {
	t.Parallel()
	b := filled(t, 35)
	r := b.examine(keysOf(t, b.signer), b.header(t), b.points...)
	if !r.Whole() || r.Entries != 35 || r.Checkpoints != 6 || r.Uncovered != 5 || r.Unsigned != 0 {
		t.Fatalf("%+v", r)
	}
	empty := newBook(b.signer)
	if r := empty.examine(keysOf(t, b.signer), empty.header(t)); !r.Whole() {
		t.Fatalf("an empty log: %+v", r)
	}
	keyless := newBook(nil)
	keyless.add(t, keyless.draft("os:alice", "task.submit", "task/1"))
	keyless.signer = b.signer
	keyless.add(t, keyless.draft("os:alice", "task.submit", "task/2"))
	if r := keyless.examine(keysOf(t, b.signer), keyless.header(t)); !r.Whole() || r.Unsigned != 1 {
		t.Fatalf("a log that began without a key: %+v", r)
	}
}

// rehash makes the stored hashes fit the records again, as somebody would who knows the tables.
func (b *book) rehash(t *testing.T) {
	t.Helper()
	records := b.records
	b.hashes = nil
	for i := range records {
		h := LeafHash([]byte(records[i].Leaf))
		g := Grow(int64(i), b.read)
		if err := g.Add(h); err != nil {
			t.Fatal(err)
		}
		b.hashes = append(b.hashes, g.New...)
		records[i].Hash = h.String()
	}
}

func TestEachChangeIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do    func(t *testing.T, b *book) Header // nil header: that of the log
		file  bool                               // there are checkpoints outside
		kind  string
		first int64
		last  int64
		words string
	}{
		"a leaf": {do: func(t *testing.T, b *book) Header {
			b.records[17].Leaf = strings.Replace(b.records[17].Leaf, "task/17", "task/99", 1)
			return b.header(t)
		}, kind: FoundChanged, first: 17, last: 17, words: "signature does not fit"},
		"a leaf, with all hashes made anew": {do: func(t *testing.T, b *book) Header {
			b.records[17].Leaf = strings.Replace(b.records[17].Leaf, "task/17", "task/99", 1)
			b.rehash(t)
			return b.header(t)
		}, kind: FoundChanged, first: 17, last: 17, words: "signature does not fit"},
		"a leaf that is none any more": {do: func(t *testing.T, b *book) Header {
			b.records[17].Leaf = "{}"
			return b.header(t)
		}, kind: FoundChanged, first: 17, last: 17, words: "version 0"},
		"a leaf and its signature": {do: func(t *testing.T, b *book) Header {
			b.records[17].Leaf = strings.Replace(b.records[17].Leaf, "task/17", "task/99", 1)
			b.records[17].Signature = ""
			return b.header(t)
		}, kind: FoundChanged, first: 17, last: 17, words: "signature does not fit"},
		"two entries that changed places": {do: func(t *testing.T, b *book) Header {
			b.records[4].Leaf, b.records[5].Leaf = b.records[5].Leaf, b.records[4].Leaf
			return b.header(t)
		}, kind: FoundChanged, first: 4, last: 4, words: "says that it is entry 5"},
		"a reason": {do: func(t *testing.T, b *book) Header {
			b.records[3].Private.Reason = "a better one"
			return b.header(t)
		}, kind: FoundChanged, first: 3, last: 3, words: "its reason or the address"},
		"a column": {do: func(t *testing.T, b *book) Header {
			b.records[3].Odd = "verb"
			return b.header(t)
		}, kind: FoundChanged, first: 3, last: 3, words: "column verb"},
		"a name": {do: func(t *testing.T, b *book) Header {
			b.people["os:alice"].Name = "os:carol"
			return b.header(t)
		}, kind: FoundChanged, first: 0, last: 0, words: `the name "os:carol" was changed`},
		"a name that went, and no entry says so": {do: func(t *testing.T, b *book) Header {
			p := b.people["os:alice"]
			p.Name, p.Salt = "", ""
			return b.header(t)
		}, kind: FoundErased, first: -1, last: -1, words: "no entry says so"},
		"a reason that went, and no entry says so": {do: func(t *testing.T, b *book) Header {
			b.records[3].Salt, b.records[3].Private = "", Private{}
			return b.header(t)
		}, kind: FoundErased, first: 3, last: 3, words: "no entry says so"},
		"an entry that went": {do: func(t *testing.T, b *book) Header {
			h := b.header(t)
			b.records[17] = Record{Seq: 17, Hash: b.records[17].Hash}
			return h
		}, kind: FoundDeleted, first: 17, last: 17, words: "entry 17 is missing"},
		"entries that went with their hashes": {do: func(t *testing.T, b *book) Header {
			h := b.header(t)
			b.records = slices.Delete(b.records, 17, 20)
			return h
		}, kind: FoundDeleted, first: 17, last: 19, words: "entries 17 to 19 are missing"},
		"an entry behind the last": {do: func(t *testing.T, b *book) Header {
			h := b.header(t)
			other := newBook(nil)
			for range 35 {
				other.records = append(other.records, Record{})
			}
			other.hashes = make([]Hash, HashCount(35))
			r := other.add(t, b.draft("os:mallory", "task.submit", "task/x"))
			r.Hash = ""
			b.records = append(b.records, r)
			return h
		}, kind: FoundInserted, first: 35, last: 35, words: "was inserted"},
		"an entry behind the last, with its hashes": {do: func(t *testing.T, b *book) Header {
			was := b.signer
			b.signer = nil
			b.add(t, b.draft("os:mallory", "task.submit", "task/x"))
			b.signer = was
			return b.header(t)
		}, kind: FoundInserted, first: 35, last: 35, words: "no server has signed it"},
		"an entry twice": {do: func(t *testing.T, b *book) Header {
			h := b.header(t)
			b.records = slices.Insert(b.records, 12, b.records[11])
			return h
		}, kind: FoundInserted, first: 11, last: 11, words: "twice"},
		"a stored hash": {do: func(t *testing.T, b *book) Header {
			b.records[8].Hash = Hash{}.String()
			return b.header(t)
		}, kind: FoundHash, first: 8, last: 8, words: "the entry itself is sound"},
		"a stored hash within the tree": {do: func(t *testing.T, b *book) Header {
			h := b.header(t)
			h.Root = Hash{}.String()
			return h
		}, kind: FoundHash, first: -1, last: -1, words: "all entries are sound"},
		"a checkpoint": {do: func(t *testing.T, b *book) Header {
			b.points[1] = strings.Replace(b.points[1], "\n20\n", "\n21\n", 1)
			return b.header(t)
		}, kind: FoundSignature, first: -1, last: -1, words: "does not hold"},
		"the newest cut off": {do: func(t *testing.T, b *book) Header {
			b.cutTo(12)
			return b.header(t)
		}, kind: FoundCut, first: 12, last: 29, words: "in the tables has them"},
		"the newest cut off, without a checkpoint that has them": {do: func(t *testing.T, b *book) Header {
			h := b.header(t)
			b.cutTo(31)
			return h
		}, kind: FoundCut, first: 31, last: 34, words: "The tables have counted them"},
		"tables of yesterday": {file: true, do: func(t *testing.T, b *book) Header {
			b.cutTo(24)
			b.points = b.points[:2]
			return b.header(t)
		}, kind: FoundRestored, first: 24, last: 29, words: "as they were soon after 2026-03-01T12:20:00.123456Z"},
		"tables of yesterday, written on": {file: true, do: func(t *testing.T, b *book) Header {
			b.cutTo(24)
			b.points = b.points[:2]
			for range 20 {
				b.add(t, b.draft("os:mallory", "task.submit", "task/y"))
			}
			b.checkpoint(t)
			return b.header(t)
		}, kind: FoundRewritten, first: 20, last: 29, words: "an older copy of the tables was restored and written on"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := filled(t, 35)
			var outside []string
			if c.file {
				outside = slices.Clone(b.points)
			}
			h := c.do(t, b)
			r := b.examine(keysOf(t, b.signer), h, outside...)
			if len(r.Findings) == 0 {
				t.Fatal("nothing was found")
			}
			f := r.Findings[0]
			if f.Kind != c.kind || f.First != c.first || f.Last != c.last || !strings.Contains(f.Words, c.words) {
				t.Errorf("found %+v, want %s %d to %d: %s", f, c.kind, c.first, c.last, c.words)
			}
			if most := 2; len(r.Findings) > most {
				t.Errorf("one change gives %d findings: %+v", len(r.Findings), r.Findings)
			}
		})
	}
}

func (b *book) cutTo(n int) {
	b.records = b.records[:n]
	b.hashes = b.hashes[:HashCount(int64(n))]
}

func TestAnErasureThatTheLogNamesIsNone(t *testing.T) {
	t.Parallel()
	b := filled(t, 30)
	p := b.people["os:alice"]
	b.add(t, b.draft("os:bob", VerbErase, ErasedPerson(p.Ref)))
	b.add(t, b.draft("os:bob", VerbErase, ErasedEntry(5)))
	p.Name, p.Salt = "", ""
	for i := range b.records {
		if b.records[i].Person == p || i == 5 {
			b.records[i].Salt, b.records[i].Private = "", Private{}
		}
	}
	r := b.examine(keysOf(t, b.signer), b.header(t), b.points...)
	if !r.Whole() || r.Erased != 1 {
		t.Fatalf("%+v", r)
	}
	for _, record := range b.records {
		if strings.Contains(fmt.Sprintf("%+v", record), "alice") {
			t.Fatalf("the name is still there: %+v", record)
		}
	}
}

func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	b := filled(t, 450)
	for i := range b.records {
		b.records[i].Private.Reason = "x"
	}
	r := b.examine(keysOf(t, b.signer), b.header(t))
	if len(r.Findings) != findingsMax || r.More != 250 {
		t.Fatalf("%d findings, %d more", len(r.Findings), r.More)
	}
}

// A log grows, is signed, copied, restored and tampered with at random: an examination with the
// checkpoints of outside finds something exactly if the log is not what it was.
func TestTheExaminationFindsWhateverIsDone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := newBook(signerOf(t, 1))
		var outside []string
		signed := map[int]string{} // size to root, of checkpoints outside
		touched := false
		var copies []*book
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				who := rapid.SampledFrom([]string{"os:alice", "corp:bob~k3f9x2qa", "server:schedule/x"}).Draw(rt, "who")
				b.add(t, b.draft(who, "zone.pause", rapid.StringN(0, 20, 60).Draw(rt, "object")))
			},
			"checkpoint": func(*rapid.T) {
				if touched || len(b.records) == 0 {
					return
				}
				if _, there := signed[len(b.records)]; !there {
					outside = append(outside, b.checkpoint(t))
					signed[len(b.records)] = b.root(t).String()
				}
			},
			"copy": func(*rapid.T) {
				if !touched {
					one := *b
					one.records, one.hashes = slices.Clone(b.records), slices.Clone(b.hashes)
					one.points = slices.Clone(b.points)
					copies = append(copies, &one)
				}
			},
			"restore": func(rt *rapid.T) {
				if len(copies) == 0 || touched {
					return
				}
				one := *rapid.SampledFrom(copies).Draw(rt, "copy")
				one.records, one.hashes = slices.Clone(one.records), slices.Clone(one.hashes)
				one.points = slices.Clone(one.points)
				lost := false
				for size, root := range signed {
					// A copy of another line of events may be as long, and is another log.
					lost = lost || size > len(one.records) || one.rootOf(t, size).String() != root
				}
				b, touched = &one, lost
			},
			"change": func(rt *rapid.T) {
				if len(b.records) == 0 {
					return
				}
				i := rapid.IntRange(0, len(b.records)-1).Draw(rt, "entry")
				if leaf := strings.Replace(b.records[i].Leaf, "zone.pause", "zone.resum", 1); leaf != b.records[i].Leaf {
					b.records[i].Leaf, touched = leaf, true
				}
			},
			"delete": func(rt *rapid.T) {
				if n := len(b.records); n > 1 && !touched {
					i := rapid.IntRange(0, n-2).Draw(rt, "entry")
					b.records[i] = Record{Seq: b.records[i].Seq, Hash: b.records[i].Hash}
					touched = true
				}
			},
			"": func(rt *rapid.T) {
				h := Header{Form: FormOfExports, Size: int64(len(b.records)), Root: b.root(t).String()}
				r := b.examine(keysOf(t, b.signer), h, outside...)
				if r.Whole() == touched {
					rt.Fatalf("touched: %v, found: %+v", touched, r.Findings)
				}
			},
		})
	})
}

// A place outside got the entries, too: what it has says what a changed or missing one was.
func TestCopiesOutsideNameWhatIsDifferent(t *testing.T) {
	t.Parallel()
	b := filled(t, 35)
	outside := slices.Clone(b.records)
	// The intruder has the key of the server, and makes all anew.
	forged := newBook(b.signer)
	for i := range 30 {
		d := b.draft("os:alice", "task.submit", fmt.Sprintf("task/%d", i))
		if i == 12 {
			d = b.draft("os:mallory", "task.submit", "task/x")
		}
		d.Entry.ID = digest(fmt.Sprint("id", i))[:32]
		forged.add(t, d)
	}
	x := NewExaminer(keysOf(t, b.signer))
	for _, r := range outside {
		x.Copy("copy.log", r)
	}
	for _, r := range forged.records {
		x.Entry(r)
	}
	r := x.Finish(forged.header(t))
	changed, restored := false, false
	for _, f := range r.Findings {
		changed = changed || f.Kind == FoundChanged && f.First == 12 && strings.Contains(f.Words, "copy.log has another one")
		restored = restored || f.Kind == FoundRestored && f.First == 30 && f.Last == 34
	}
	if !changed || !restored {
		t.Errorf("%+v", r.Findings)
	}
}
