package enroll

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/files"
)

// knownFile is a known_hosts file to which new keys are written.
type knownFile struct {
	path  string // target of links
	mode  os.FileMode
	lines []string
	known *remote.KnownHosts // nil: there is no file yet
}

// readKnownFile reads the file, which may not exist yet.
func readKnownFile(path string) (*knownFile, error) {
	f := &knownFile{path: path, mode: 0o644}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		f.path = real
	}
	text, err := files.Read(f.path, remote.KnownHostsMax)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--write: %w", err)
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, fmt.Errorf("--write: %w", err)
	}
	f.mode = info.Mode().Perm()
	f.lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if f.known, err = remote.ReadKnownHosts(f.path); err != nil {
		return nil, fmt.Errorf("--write: %w", err)
	}
	return f, nil
}

func (f *knownFile) keys(h fleet.Host) []string {
	if f.known == nil {
		return nil
	}
	return f.known.Keys(h.Address, h.Port)
}

// trust returns the entries of the file for a host.
func (f *knownFile) trust(h fleet.Host) fleet.Trust {
	if f == nil || f.known == nil {
		return fleet.Trust{}
	}
	return f.known.Trust(h.Address, h.Port)
}

func (f *knownFile) revoked(key string) bool { return f.known != nil && f.known.Revoked(key) }

// take writes new keys and, with replace, changed ones in place of the old. It writes all or
// nothing, and marks the keys that it wrote.
func (f *knownFile) take(list []enrolled, replace bool) error {
	var errs []error
	var written []*enrolledKey
	for i := range list {
		for k := range list[i].Keys {
			key := &list[i].Keys[k]
			switch {
			case key.State == keyRevoked, key.inFile && key.State != keyChanged,
				key.State == keyKnown && key.Certifies != nil:
				continue
			case key.State == keyChanged && !replace:
				continue
			case key.State == keyChanged:
				if err := f.forget(key); err != nil {
					errs = append(errs, fmt.Errorf("host %s: %w", list[i].Host, err))
					continue
				}
			}
			if !key.inFile {
				f.lines = append(f.lines, key.Line)
			}
			written = append(written, key)
		}
	}
	if err := errors.Join(errs...); err != nil || len(written) == 0 {
		return err
	}
	if err := f.save(); err != nil {
		return err
	}
	for _, key := range written {
		key.Written = true
	}
	return nil
}

// forget removes the lines with other keys of this type for the host of a key.
func (f *knownFile) forget(key *enrolledKey) error {
	name, _, _ := strings.Cut(key.Line, " ")
	var stay []string
	for i, line := range f.lines {
		words := strings.Fields(line)
		if len(words) < 3 || strings.HasPrefix(words[0], "#") || strings.HasPrefix(words[0], "@") ||
			words[1] != key.Type || sameKey(words[1]+" "+words[2], key.Key) || !names(words[0], name) {
			stay = append(stay, line)
			continue
		}
		if strings.ContainsAny(words[0], ",*?!") {
			return fmt.Errorf("%s:%d names other hosts, too, so it is not replaced: take it out, or write "+
				"a line for each host", f.path, i+1)
		}
	}
	f.lines = stay
	return nil
}

// names reports whether the first field of a line means a host: by its name in a list, by its hash,
// or by a pattern.
func names(field, host string) bool {
	if hashed, ok := strings.CutPrefix(field, "|1|"); ok {
		salt, sum, _ := strings.Cut(hashed, "|")
		key, err1 := base64.StdEncoding.DecodeString(salt)
		want, err2 := base64.StdEncoding.DecodeString(sum)
		mac := hmac.New(sha1.New, key)
		mac.Write([]byte(host)) // never fails
		return err1 == nil && err2 == nil && hmac.Equal(mac.Sum(nil), want)
	}
	for one := range strings.SplitSeq(field, ",") {
		if one == host || strings.ContainsAny(one, "*?") && matches(one, host) {
			return true
		}
	}
	return false
}

// matches reports whether a pattern of known_hosts matches a host.
func matches(pattern, host string) bool {
	// In a path '*' stops at '/', which no host has, and '[' begins a class.
	ok, err := filepath.Match(strings.NewReplacer("[", `\[`, "]", `\]`).Replace(pattern), host)
	return err == nil && ok
}

// save writes a new file and renames it: a reader meanwhile sees the old one.
func (f *knownFile) save() (err error) {
	dir := filepath.Dir(f.path)
	temp, err := os.CreateTemp(dir, ".known_hosts-*")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--write: there is no folder %s: make it first", dir)
	}
	if err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("--write: %w", err), os.Remove(temp.Name()))
		}
	}()
	_, err = temp.WriteString(strings.Join(f.lines, "\n") + "\n")
	err = errors.Join(err, temp.Chmod(f.mode), temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), f.path)
}
