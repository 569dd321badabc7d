package read

import (
	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
)

// Heard is how far the output of a job was read. The zero value is its beginning.
//
// An attempt that took over the run of an earlier one hears all of that run anew. What
// was heard of it before has its place already, and what is new stands behind the line
// by which the attempt says so. So each byte is there once, and where pieces of what
// was heard before are missing, who reads from the beginning finds them in their place.
type Heard struct {
	last  string     // entry
	token jobs.Token // of the attempt in hand; 0: none is
	base  int64      // where that begins
	end   int64      // of what was heard
	open  bool       // the last line that was heard has not ended

	run  jobs.Run // the last one that was heard of
	told int64    // bytes of it
	laid []laid   // where they are

	taken jobs.Run // over by the attempt in hand
	mark  int64    // where what it says of that begins
	known int64    // bytes of the run that were heard before
}

// laid is where the bytes of a run are, from one of them on.
type laid struct {
	from int64 // in the run
	at   int64 // in the output
}

// At is the place behind what was heard.
func (h *Heard) At() int64 { return h.end }

func (h *Heard) place() string {
	if h.last == "" {
		return "0"
	}
	return h.last
}

// read reads entries, and returns what is new in them, in order.
func (h *Heard) read(list []redis.XMessage) (news jobs.Output) {
	begin := h.end
	for _, e := range list {
		for _, p := range (jobs.Output(h.hear(e))).From(begin) {
			news = news.With(p)
		}
	}
	return news
}

// hear reads an entry and returns the pieces in it. While an attempt runs there are
// pieces of its output, and at its end all that is kept of it in their place.
func (h *Heard) hear(e redis.XMessage) []jobs.Piece {
	h.last = e.ID
	if data, ok := e.Values["live"].(string); ok {
		token, end, ok := codec.LiveID(e.ID)
		if !ok {
			return nil
		}
		text, _ := e.Values["runs"].(string)
		runs := codec.ReadRuns(text)
		h.enter(token)
		out := h.takeOver(runs)
		out = append(out, h.lay(end-int64(len(data)), data)...)
		h.learn(runs, end)
		return out
	}
	text, ok := e.Values["said"].(string)
	if !ok {
		// The entries of earlier versions are bare.
		text, _ = e.Values["data"].(string)
		h.enter(0)
		return h.lay(0, text)
	}
	token, gap, runs, data := codec.ReadSaid(text)
	h.enter(token)
	out := h.takeOver(runs)
	out = append(out, h.lay(0, string(data[:gap.At]))...)
	out = append(out, h.lay(int64(gap.At)+gap.Left, string(data[gap.At:]))...)
	whole := int64(len(data)) + gap.Left
	h.learn(runs, whole)
	h.end, h.token = max(h.end, h.base-h.known+whole), 0
	return out
}

// enter goes on to an attempt, if it is another one.
func (h *Heard) enter(token jobs.Token) {
	if token == 0 || token != h.token {
		h.base, h.token = h.end, token
		h.taken, h.mark, h.known = jobs.Run{}, 0, 0
	}
}

// takeOver notes that the attempt in hand took over a run, once it says so. Its line
// about that begins on a line of its own.
func (h *Heard) takeOver(runs jobs.Runs) (out []jobs.Piece) {
	run := runs.Taken
	if run.Token == 0 || h.taken.Token != 0 {
		return nil
	}
	h.taken, h.mark = run, runs.Mark
	if !run.Is(h.run) {
		h.run, h.told, h.laid = run, 0, nil
	}
	if h.known = h.told; h.known > 0 {
		if h.open && h.mark == 0 {
			out = []jobs.Piece{{At: h.base, Data: []byte("\n"), Ours: true}}
			h.base++
			h.end = max(h.end, h.base)
		}
		h.mark = 0 // the title of the step was heard before, too
	}
	h.laid = append(h.laid, laid{h.known, h.base + run.At})
	return out
}

// learn notes how much was heard of the last run when so much was of the attempt.
func (h *Heard) learn(runs jobs.Runs, end int64) {
	run := runs.Last
	size := end - run.At
	switch {
	case run.Token == 0 || size <= 0:
	case run.Is(h.run):
		h.told = max(h.told, size)
	default:
		h.run, h.told, h.laid = run, size, []laid{{0, h.base - h.known + run.At}}
	}
}

// lay finds the places of bytes that stand somewhere in what the attempt in hand said.
func (h *Heard) lay(at int64, data string) (out []jobs.Piece) {
	if len(data) == 0 {
		return nil
	}
	h.open = data[len(data)-1] != '\n'
	p := jobs.Piece{At: at, Data: []byte(data)}
	put := func(p jobs.Piece, shift int64) {
		if p.At += shift; len(p.Data) > 0 {
			out, h.end = append(out, p), max(h.end, p.End())
		}
	}
	if h.taken.Token != 0 {
		var part jobs.Piece
		part, p = p.Cut(h.mark)
		put(part, h.base)
		part, p = p.Cut(h.taken.At)
		part.Ours = true
		put(part, h.base)
		for i := 0; h.known > 0 && i+1 < len(h.laid); i++ {
			part, p = p.Cut(h.taken.At + h.laid[i+1].from)
			put(part, h.laid[i].at-h.laid[i].from-h.taken.At)
		}
	}
	put(p, h.base-h.known)
	return out
}
