package worker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"muster/jobs"
	"muster/worker/said"
)

const (
	// voicesAfter is how old an attempt is before what its host says is passed on:
	// shorter ones cost no call.
	voicesAfter = time.Second

	// voicesEvery bounds the calls; one is for all attempts.
	voicesEvery = 500 * time.Millisecond

	// voicesPause is how long nothing is passed on after a call that failed.
	voicesPause = 5 * time.Second

	// voicesMax is when a call is full, in bytes: what else waits goes with the next,
	// as far as it still waits then.
	voicesMax = 256 << 10
)

// A Listener takes what hosts say while they say it. It returns those jobs of which
// it wants to hear no more. What it has not taken need not be said again.
type Listener interface {
	Speak(ctx context.Context, zone string, list []jobs.Speech) ([]jobs.ID, error)
}

// voices pass on what the hosts of running jobs say. They belong to the clerk, but
// for the call itself, of which there is one at a time. Nobody waits for it: what
// comes meanwhile waits in the voice of its attempt, within bounds.
type voices struct {
	next    time.Duration // no call before, on the boot clock
	calling bool
	answers chan voicesAnswer
	calls   sync.WaitGroup
	cancel  context.CancelFunc // of the call
}

type voicesAnswer struct {
	mute []jobs.ID
	err  error
}

func newVoices() voices {
	return voices{answers: make(chan voicesAnswer, 1), cancel: func() {}}
}

// end gives up the call that is under way.
func (v *voices) end() {
	v.cancel()
	v.calls.Wait()
}

// speakAt is when to look next whether there is something to pass on; 0: nobody
// speaks.
func (c *clerk) speakAt() time.Duration {
	v := &c.lines.voices
	if v.calling || c.mode == stopping {
		return 0
	}
	oldest := time.Duration(0)
	for _, a := range c.inHand {
		if oldest == 0 || a.Began() < oldest {
			oldest = a.Began()
		}
	}
	if oldest == 0 {
		return 0
	}
	return max(oldest+voicesAfter, v.next)
}

// speak passes on what the hosts of running jobs have said, if it is time to.
func (c *clerk) speak(ctx context.Context) {
	at := c.speakAt()
	if at == 0 || c.Clock() < at {
		return
	}
	v := &c.lines.voices
	v.next = c.Clock() + voicesEvery
	list := c.speeches()
	if len(list) == 0 {
		return
	}
	v.calling = true
	ctx, v.cancel = context.WithTimeout(ctx, c.cfg.Call)
	v.calls.Go(func() {
		mute, err := c.Queue.Speak(ctx, c.calls.zone, list)
		v.answers <- voicesAnswer{mute, err} // there is room: one call at a time
	})
}

// speeches takes what waits in the voices, until a call is full. First comes who has
// not been heard for longest.
func (c *clerk) speeches() []jobs.Speech {
	var old []*said.Voice
	for _, a := range c.inHand {
		if c.Clock()-a.Began() >= voicesAfter {
			old = append(old, a.Voice())
		}
	}
	slices.SortFunc(old, func(x, y *said.Voice) int { return cmp.Compare(x.Turn, y.Turn) })
	var list []jobs.Speech
	size := 0
	for _, v := range old {
		if size >= voicesMax {
			break
		}
		for _, s := range v.Speeches() {
			list, size = append(list, s), size+len(s.Data)
			v.Turn = c.Clock()
		}
	}
	return list
}

// spoke looks at what became of a call.
func (c *clerk) spoke(answer voicesAnswer) {
	v := &c.lines.voices
	v.calling = false
	v.cancel()
	if answer.err != nil {
		v.next = c.Clock() + voicesPause
		c.Log.Debug("what hosts say was not passed on, their results will have it",
			"zone", c.calls.zone, "error", answer.err)
		return
	}
	for _, a := range c.inHand {
		for _, id := range answer.mute {
			if a.Grant().Job == id {
				a.Voice().Silence()
			}
		}
	}
}
