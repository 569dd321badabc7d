package backupfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
)

func vouch(sum string) (string, error) { return "by us: " + sum, nil }

func stranger(string) (string, error) { return "mine", nil }

func check(sum, mac string) error {
	if mac != "by us: "+sum {
		return errors.New("no server has vouched for it")
	}
	return nil
}

func newIdentity(t testing.TB) *age.X25519Identity {
	t.Helper()
	k, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// pack returns a backup of these parts.
func pack(t testing.TB, to age.Recipient, v Vouch, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Recipients{to}, v)
	for _, p := range parts {
		err = errors.Join(err, w.Put('X', []byte(p), nil, []byte("second")))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// parts reads a backup.
func parts(file []byte, own ...age.Identity) (out []string, err error) {
	err = Read(bytes.NewReader(file), own, check, func(kind Kind, fields [][]byte) error {
		out = append(out, fmt.Sprintf("%c%q", kind, fields))
		return nil
	})
	return out, err
}

func TestABackupIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	k := newIdentity(t)
	large := strings.Repeat("much ", 1<<19)
	got, err := parts(pack(t, k.Recipient(), vouch, "one", large), k)
	want := []string{`X["one" "" "second"]`, fmt.Sprintf(`X[%q "" "second"]`, large)}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d parts, %v", len(got), err)
	}
}

// Whatever is cut off or changed, nobody believes what is left.
func TestACutOrChangedBackupIsRefused(t *testing.T) {
	t.Parallel()
	k := newIdentity(t)
	whole := pack(t, k.Recipient(), vouch, "one", strings.Repeat("two", 1000))
	for n := range whole {
		if _, err := parts(whole[:n], k); err == nil {
			t.Fatalf("the first %d of %d bytes are believed", n, len(whole))
		}
		changed := slices.Clone(whole)
		changed[n] ^= 4
		if _, err := parts(changed, k); err == nil {
			t.Fatalf("it is believed with another byte %d of %d", n, len(whole))
		}
	}
	if _, err := parts(append(slices.Clone(whole), 'x'), k); err == nil {
		t.Error("it is believed with a byte behind its end")
	}
	for name, c := range map[string]struct {
		file []byte
		own  age.Identity
		want string
	}{
		"of others":          {whole, newIdentity(t), "encrypted for others"},
		"of a stranger":      {pack(t, k.Recipient(), stranger, "one"), k, "no server"},
		"without an end":     {unfinished(t, k.Recipient()), k, "ends too early"},
		"something else":     {[]byte("SQLite format 3"), k, "no backup"},
		"empty":              {nil, k, "no backup"},
		"a part of no sense": {nonsense(t, k.Recipient()), k, "has the size"},
	} {
		if _, err := parts(c.file, c.own); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// unfinished is a backup whose writer has closed everything but the backup.
func unfinished(t *testing.T, to age.Recipient) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Recipients{to}, vouch)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(w.Put('X', []byte("one")), w.buf.Flush(), w.pack.Close(), w.out.Close())
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// nonsense is a backup with a field that is larger than any.
func nonsense(t *testing.T, to age.Recipient) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Recipients{to}, vouch)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(w.bytes([]byte{'X', 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f}), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A file has its name only once it is whole, only its owner can read it, and it replaces none.
func TestAFileHasItsNameOnlyOnceItIsWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "backup")
	err := Create(path, func(w io.Writer) error {
		if _, err := os.Lstat(path); err == nil {
			t.Error("the file has its name before it is whole")
		}
		_, err := w.Write([]byte("half"))
		return errors.Join(err, errors.New("no more room"))
	})
	if err == nil || !strings.Contains(err.Error(), "no more room") {
		t.Errorf("got %v", err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("%v is left, %v", list, err)
	}
	whole := func(w io.Writer) error {
		_, err := w.Write([]byte("whole"))
		return err
	}
	if err := Create(path, whole); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := Create(path, whole); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a second one: %v", err)
	}
}

func TestKeysAreReadAndNoneIsRepeated(t *testing.T) {
	t.Parallel()
	k := newIdentity(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good", "# mine\n"+k.String()+"\n", 0o400)
	if own, err := ReadIdentities([]string{good}); err != nil || len(own) != 1 {
		t.Errorf("identities: %d, %v", len(own), err)
	}
	to := write("to", k.Recipient().String()+"\n", 0o644)
	if list, err := ParseRecipients([]string{k.Recipient().String()}, []string{to}); err != nil || len(list) != 2 {
		t.Errorf("recipients: %d, %v", len(list), err)
	}
	open := write("open", k.String(), 0o644)
	wrong := write("wrong", "x"+k.String(), 0o400)
	_, err := ReadIdentities([]string{open, wrong, filepath.Join(dir, "missing")})
	_, secret := ParseRecipients([]string{k.String(), "age1nonsense"}, []string{wrong})
	_, none := ParseRecipients(nil, nil)
	_, nobody := ReadIdentities(nil)
	for err, want := range map[error][]string{
		err:    {"mode 0644", "no file of age-keygen", "missing"},
		secret: {"this is a secret key", `"age1nonsense"`, "one a line"},
		none:   {"--recipients-file FILE"}, nobody: {"--identity FILE"},
	} {
		for _, words := range want {
			if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), k.String()) {
				t.Errorf("got %v, want %q, and no key", err, words)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	k := newIdentity(f)
	f.Add(pack(f, k.Recipient(), vouch, "one"))
	f.Add([]byte("age-encryption.org/v1\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := parts(file, k); err == nil {
			t.Log("it is whole") // only the seed is
		}
	})
}
