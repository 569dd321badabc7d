package settings

import (
	"io/fs"
	"os"
	"sync"
	"time"

	"muster/internal/files"
	"muster/internal/serverkey"
)

// ServerKeys returns a function that reads the key of servers; without a file it gives none. A
// changed file is in force at once, though it is read only when it has changed: every order and
// every request with a token needs it.
func ServerKeys(path string) func() (serverkey.Keys, error) {
	if path == "" {
		return func() (serverkey.Keys, error) { return serverkey.Keys{}, nil }
	}
	k := keyFile{path: path}
	return k.keys
}

// keyFile is a file of keys, with what was read last.
type keyFile struct {
	path string

	mu   sync.Mutex
	info fs.FileInfo // as it was before it was read; nil: it was never read
	read time.Time
	last serverkey.Keys
}

// settled is the age from which a file cannot change without a new time in its folder's entry, even
// where file systems count seconds.
const settled = 2 * time.Second

func (k *keyFile) keys() (serverkey.Keys, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := files.Stat(k.path)
	if err == nil && k.info != nil && os.SameFile(info, k.info) && info.Size() == k.info.Size() &&
		info.Mode() == k.info.Mode() && info.ModTime().Equal(k.info.ModTime()) &&
		k.read.Sub(info.ModTime()) > settled {
		return k.last, nil
	}
	now := time.Now()
	keys, err := readKeys("server.key", k.path, serverkey.Parse)
	if err != nil {
		k.info = nil
		return keys, err
	}
	k.info, k.read, k.last = info, now, keys
	return keys, nil
}
