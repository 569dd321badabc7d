package frame

import (
	"context"
	"sync"
)

// wholesMax bounds the whole pages that are looked at at once beside their streams: each may hold
// all jobs of a task in memory.
const wholesMax = 3

// Places are for looks at whole pages: a person has one, and all together have wholesMax.
type places struct {
	all chan struct{}

	mu sync.Mutex
	of map[string]*place // by person
}

// A place is that of one person.
type place struct {
	taken chan struct{}
	users int // that have it or wait for it
}

func newPlaces() *places {
	return &places{all: make(chan struct{}, wholesMax), of: map[string]*place{}}
}

// take waits for a place of a person. It returns how to leave it; nil: the context has ended.
func (p *places) take(ctx context.Context, person string) (leave func()) {
	own := p.mine(person)
	select {
	case own.taken <- struct{}{}:
	case <-ctx.Done():
		p.done(person)
		return nil
	}
	select {
	case p.all <- struct{}{}:
	case <-ctx.Done():
		<-own.taken
		p.done(person)
		return nil
	}
	return func() {
		<-p.all
		<-own.taken
		p.done(person)
	}
}

func (p *places) mine(person string) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.of[person]
	if own == nil {
		own = &place{taken: make(chan struct{}, 1)}
		p.of[person] = own
	}
	own.users++
	return own
}

func (p *places) done(person string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[person].users--; p.of[person].users == 0 {
		delete(p.of, person)
	}
}
