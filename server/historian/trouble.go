package historian

import "sync"

// Trouble keeps the reason why the historian of this server cannot write.
type Trouble struct {
	mu    sync.Mutex
	words string
}

// Words returns the reason; empty: there is none, or another server is the historian.
func (t *Trouble) Words() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.words
}

func (t *Trouble) set(words string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.words = words
}
