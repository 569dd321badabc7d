package audit

import (
	"cmp"
	"fmt"
	"slices"
)

// The kinds of findings.
const (
	FoundChanged   = "changed"    // an entry, or what stands beside it
	FoundDeleted   = "deleted"    // entries between others
	FoundInserted  = "inserted"   // an entry that no server wrote
	FoundCut       = "cut"        // the newest entries
	FoundRestored  = "restored"   // the tables are an older copy
	FoundRewritten = "rewritten"  // the log is another one than was signed
	FoundHash      = "hash"       // a stored hash of the tree
	FoundErased    = "erased"     // a name or a reason, without an entry that says so
	FoundSignature = "checkpoint" // a checkpoint that is not signed by a key
)

// A Finding is one thing that somebody has done to the log.
type Finding struct {
	Kind  string `json:"kind"`
	First int64  `json:"first"` // entries; -1: no certain ones
	Last  int64  `json:"last"`
	Words string `json:"words"`
}

// findingsMax bounds the findings of a Report.
const findingsMax = 200

// A Report says what an examination has found.
type Report struct {
	Entries     int64     `json:"entries"`
	Unsigned    int64     `json:"unsigned"`    // made before the server had a key
	Erased      int       `json:"erased"`      // names that were erased, as the log says
	Checkpoints int       `json:"checkpoints"` // that fit
	Newest      string    `json:"newest,omitempty"`
	Uncovered   int64     `json:"uncovered"` // newest entries that no checkpoint has yet
	Findings    []Finding `json:"findings"`
	More        int       `json:"more,omitempty"` // findings that are not listed
}

// Whole reports whether nothing was found.
func (r Report) Whole() bool { return len(r.Findings) == 0 }

// FromTables names the checkpoints that lie beside the entries, in the same tables.
const FromTables = "the tables"

// seen is a checkpoint with the place that it comes from.
type seen struct {
	Checkpoint
	from string
}

// An Examiner reads a log from the beginning, and finds what somebody has changed in it. First it
// gets the checkpoints, then the entries, then Finish.
type Examiner struct {
	keys   Keys
	points []seen // in the order of their sizes
	sorted bool

	edge   Edge
	next   int64 // seq that should come
	broken bool  // a hash is missing: the tree cannot be computed any more
	signed bool  // an entry was

	good   seen             // the last checkpoint that fits
	fits   map[string]int64 // size of the last one that fits, by place
	forked map[string]bool

	copies map[int64]copied // of entries, by seq
	gone   erasures

	report Report
}

// erasures has what was erased beside the log, and what the log says was.
type erasures struct {
	people  map[string]bool // references that were judged
	erased  map[string]bool // references without a name
	blanked []blank
	allowed map[string]bool // objects of entries that say what was erased
}

// copied is the hash of an entry as a place has it that got a copy.
type copied struct {
	hash Hash
	from string
}

// blank is an entry whose private parts are gone.
type blank struct {
	seq int64
	who string
}

// NewExaminer returns an Examiner that believes these keys.
func NewExaminer(keys Keys) *Examiner {
	return &Examiner{keys: keys, fits: map[string]int64{}, forked: map[string]bool{},
		gone: erasures{people: map[string]bool{}, erased: map[string]bool{},
			allowed: map[string]bool{}}, report: Report{Findings: []Finding{}}}
}

// span is a row of entries, from the first to the last.
type span struct{ first, last int64 }

// noEntry is the span of a finding that concerns no certain entry.
var noEntry = span{-1, -1}

func only(seq int64) span { return span{seq, seq} }

func (x *Examiner) find(kind string, at span, format string, args ...any) {
	if len(x.report.Findings) >= findingsMax {
		x.report.More++
		return
	}
	x.report.Findings = append(x.report.Findings,
		Finding{kind, at.first, at.last, fmt.Sprintf(format, args...)})
}

// Checkpoint takes a signed checkpoint from a place, such as the name of a file.
func (x *Examiner) Checkpoint(from, signed string) {
	c, err := x.keys.Open(signed)
	if err != nil {
		x.find(FoundSignature, noEntry, "%s: %s", from, err)
		return
	}
	x.points, x.sorted = append(x.points, seen{c, from}), false
}

// Copy takes an entry that a place got when it was written. Copies come before all entries.
func (x *Examiner) Copy(from string, r Record) {
	if r.Leaf == "" {
		return
	}
	if x.copies == nil {
		x.copies = map[int64]copied{}
	}
	if _, known := x.copies[r.Seq]; !known {
		x.copies[r.Seq] = copied{LeafHash([]byte(r.Leaf)), from}
	}
}

func (x *Examiner) sort() {
	if !x.sorted {
		slices.SortStableFunc(x.points, func(a, b seen) int { return cmp.Compare(a.Size, b.Size) })
		x.sorted = true
	}
}

// Entry takes the next record.
func (x *Examiner) Entry(r Record) {
	x.sort()
	if r.Seq < x.next {
		x.find(FoundInserted, only(r.Seq), "entry %d is there twice: the second one was inserted", r.Seq)
		return
	}
	if r.Seq > x.next {
		x.missing(x.next, r.Seq-1)
		x.broken = true
	}
	x.next = r.Seq + 1
	if r.Leaf == "" {
		x.missing(r.Seq, r.Seq)
	} else {
		x.report.Entries++
	}
	x.likeCopy(r)
	h, ok := x.judge(r)
	if !ok {
		x.broken = true
	}
	if !x.broken {
		x.edge.Add(h)
		x.compare()
	}
}

// likeCopy compares an entry with its copy. The copy of what was deleted says what it was.
func (x *Examiner) likeCopy(r Record) {
	c, known := x.copies[r.Seq]
	delete(x.copies, r.Seq)
	if known && r.Leaf != "" && c.hash != LeafHash([]byte(r.Leaf)) {
		x.find(FoundChanged, only(r.Seq), "entry %d was changed: %s has another one", r.Seq, c.from)
	}
}

// missing notes entries that are not there, next to those that are known to be missing.
func (x *Examiner) missing(first, last int64) {
	if n := len(x.report.Findings); n > 0 {
		f := &x.report.Findings[n-1]
		if f.Kind == FoundDeleted && f.Last == first-1 {
			f.Last = last
			f.Words = deletedWords(f.First, last)
			return
		}
	}
	x.find(FoundDeleted, span{first, last}, "%s", deletedWords(first, last))
}

func deletedWords(first, last int64) string {
	if first == last {
		return fmt.Sprintf("entry %d is missing: it was deleted", first)
	}
	return fmt.Sprintf("entries %d to %d are missing: they were deleted", first, last)
}

// judge returns the hash that the tree has for a record; false: nobody knows it.
func (x *Examiner) judge(r Record) (Hash, bool) {
	stored, err := parseHashes([]string{r.Hash})
	kept := err == nil && r.Hash != ""
	if r.Leaf == "" {
		if kept {
			return stored[0], true
		}
		return Hash{}, false
	}
	own := LeafHash([]byte(r.Leaf))
	e, wrong := Parse([]byte(r.Leaf))
	sound := x.keys.Signed([]byte(r.Leaf), r.Signature)
	switch {
	case wrong == nil && e.Seq != r.Seq:
		x.find(FoundChanged, only(r.Seq), "entry %d was changed: it says that it is entry %d", r.Seq,
			e.Seq)
	case wrong == nil && !sound && !x.keys.None() && (r.Signature != "" || x.signed):
		x.unsigned(r, kept)
	case wrong != nil && !kept:
		x.find(FoundInserted, only(r.Seq), "entry %d was inserted: it is no entry (%s), and the tree "+
			"has no hash of it", r.Seq, wrong)
	case wrong != nil:
		x.find(FoundChanged, only(r.Seq), "entry %d was changed: %s", r.Seq, wrong)
	case !kept && r.Seq < x.covered():
		x.find(FoundHash, only(r.Seq), "the stored hash of entry %d is missing", r.Seq)
	case !kept:
		x.find(FoundInserted, only(r.Seq), "entry %d was inserted: the tree has no hash of it", r.Seq)
	case own != stored[0] && sound:
		x.find(FoundHash, only(r.Seq), "the stored hash of entry %d was changed; the entry itself is "+
			"sound", r.Seq)
	case own != stored[0]:
		x.find(FoundChanged, only(r.Seq), "entry %d was changed: it does not have the hash that the "+
			"tree has for it", r.Seq)
	default:
		x.signed = x.signed || sound
		if !sound {
			x.report.Unsigned++
		}
		x.beside(r, e)
	}
	if sound || !kept {
		return own, true
	}
	return stored[0], true
}

// unsigned notes an entry that no key has signed.
func (x *Examiner) unsigned(r Record, kept bool) {
	if kept && r.Seq < x.covered() {
		x.find(FoundChanged, only(r.Seq), "entry %d was changed: the server's signature does not fit "+
			"it", r.Seq)
		return
	}
	x.find(FoundInserted, only(r.Seq), "entry %d was inserted, or changed before a checkpoint had "+
		"it: no server has signed it", r.Seq)
}

// covered returns the size of the largest checkpoint.
func (x *Examiner) covered() int64 {
	if len(x.points) == 0 {
		return 0
	}
	return x.points[len(x.points)-1].Size
}

// beside examines what stands beside the leaf of a sound entry.
func (x *Examiner) beside(r Record, e Entry) {
	if r.Odd != "" {
		x.find(FoundChanged, only(r.Seq), "entry %d was changed beside its leaf: column %s", r.Seq,
			r.Odd)
	}
	if e.Verb == VerbErase {
		x.gone.allowed[e.Object] = true
	}
	x.person(r, e)
	gone := r.Salt == "" && r.Private == (Private{})
	switch {
	case e.Said == "" && gone:
	case gone:
		x.gone.blanked = append(x.gone.blanked, blank{r.Seq, e.Who})
	case r.Private.Commitment(r.Salt) != e.Said:
		x.find(FoundChanged, only(r.Seq), "entry %d was changed beside its leaf: its reason or the "+
			"address of the caller", r.Seq)
	}
}

// person examines the name that an entry refers to, once for each name.
func (x *Examiner) person(r Record, e Entry) {
	if e.Who == "" || x.gone.people[e.Who] {
		return
	}
	x.gone.people[e.Who] = true
	switch p := r.Person; {
	case p == nil || p.Ref != e.Who:
		x.find(FoundErased, only(r.Seq), "the name that entry %d refers to is missing from its table",
			r.Seq)
	case p.Erased():
		x.gone.erased[e.Who] = true
	case !p.Fits():
		x.find(FoundChanged, only(r.Seq), "the name %q was changed: entry %d and others refer to "+
			"another one", Clean(p.Name, textMax), r.Seq)
	}
}

// compare holds the tree against the checkpoints of its size.
func (x *Examiner) compare() {
	for len(x.points) > 0 && x.points[0].Size <= x.edge.Size() {
		p := x.points[0]
		x.points = x.points[1:]
		if p.Size < x.edge.Size() {
			continue // of size 0, which says nothing
		}
		if p.Root == x.edge.Root() {
			x.good, x.fits[p.from] = p, p.Size
			x.report.Checkpoints++
			continue
		}
		x.fork(p)
	}
}

// fork notes the first checkpoint of a place that the log does not fit, unless a finding explains
// it.
func (x *Examiner) fork(p seen) {
	first := x.fits[p.from]
	if x.forked[p.from] || x.explained(first, p.Size) {
		return
	}
	x.forked[p.from] = true
	x.find(FoundRewritten, span{first, p.Size - 1}, "the log is another one than %s says, "+
		"which was signed at %s: entries %d to %d are not those of then. If each of them has its "+
		"signature, an older copy of the tables was restored and written on", p.from,
		p.At.Format(timeForm), first, p.Size-1)
}

func (x *Examiner) explained(from, to int64) bool {
	return slices.ContainsFunc(x.report.Findings, func(f Finding) bool {
		return f.First >= from && f.First < to
	})
}

// Finish ends the examination. The header is that of the export: the tables say how many entries
// there are, and what the hash of the tree is.
func (x *Examiner) Finish(h Header) Report {
	x.sort()
	x.cut(h.Size)
	x.beyond()
	x.judgeErasures()
	if !x.broken && h.Size == x.edge.Size() && h.Root != "" && h.Root != x.edge.Root().String() &&
		x.report.Whole() {
		x.find(FoundHash, noEntry, "the stored hashes of the tree were changed; all entries are sound")
	}
	if x.good.Size > 0 {
		x.report.Newest = x.good.At.Format(timeForm)
	}
	x.report.Uncovered = max(0, x.next-max(x.good.Size, x.covered()))
	return x.report
}

// cut compares the number of entries with those of the checkpoints that are left.
func (x *Examiner) cut(size int64) {
	most := map[string]seen{}
	for _, p := range x.points {
		if p.Size > x.next && p.Size > most[p.from].Size {
			most[p.from] = p
		}
	}
	if p, is := most[FromTables]; is {
		x.find(FoundCut, span{x.next, p.Size - 1}, "the newest entries, %d to %d (%d of them), are "+
			"missing: they were cut off. A checkpoint of %s in the tables has them", x.next, p.Size-1,
			p.Size-x.next, p.At.Format(timeForm))
		return
	}
	if size > x.next {
		x.find(FoundCut, span{x.next, size - 1}, "the newest entries, %d to %d (%d of them), are "+
			"missing: they were cut off. The tables have counted them", x.next, size-1, size-x.next)
		return
	}
	for from, p := range most {
		x.find(FoundRestored, span{x.next, p.Size - 1}, "the tables end at entry %d, and %s has a "+
			"checkpoint of %d entries, signed at %s: an older copy of the tables was restored%s, or "+
			"entries %d to %d were cut off together with their checkpoints", x.next-1, from, p.Size,
			p.At.Format(timeForm), x.asOf(), x.next, p.Size-1)
	}
}

// beyond notes copies of entries behind the last one, unless a checkpoint has told that they are
// missing.
func (x *Examiner) beyond() {
	at, from := noEntry, ""
	for seq, c := range x.copies {
		if seq < x.next {
			continue
		}
		if at == noEntry || seq < at.first {
			at.first = seq
		}
		at.last, from = max(at.last, seq), c.from
	}
	if at != noEntry && !x.explained(at.first, at.last+1) {
		x.find(FoundRestored, at, "the tables end at entry %d, and %s has entries up to %d: the newest "+
			"were cut off, or an older copy of the tables was restored", x.next-1, from, at.last)
	}
}

// asOf says how old the tables are.
func (x *Examiner) asOf() string {
	if x.good.Size == 0 {
		return ""
	}
	return ", as they were soon after " + x.good.At.Format(timeForm)
}

// judgeErasures looks whether the log says of all that was erased that it was.
func (x *Examiner) judgeErasures() {
	for ref := range x.gone.erased {
		if x.gone.allowed[ErasedPerson(ref)] {
			x.report.Erased++
			continue
		}
		x.find(FoundErased, noEntry, "the name of %s was erased, and no entry says so",
			ref[:min(12, len(ref))])
	}
	for _, b := range x.gone.blanked {
		if !x.gone.allowed[ErasedEntry(b.seq)] && !x.gone.allowed[ErasedPerson(b.who)] {
			x.find(FoundErased, only(b.seq), "reason and address of entry %d were erased, and no entry "+
				"says so", b.seq)
		}
	}
}

// VerbErase is the verb of an entry that says what was erased beside the log.
const VerbErase = "audit.erase"

// ErasedPerson returns the object of an entry that says that a name was erased, with the reasons
// and addresses of that person's entries.
func ErasedPerson(ref string) string { return "person/" + ref }

// ErasedEntry returns the object of an entry that says that reason and address of an entry were
// erased.
func ErasedEntry(seq int64) string { return fmt.Sprintf("entry/%d", seq) }
