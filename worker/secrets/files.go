package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"filippo.io/age"
	"filippo.io/age/armor"

	"muster/internal/files"
	"muster/internal/seal"
	"muster/internal/secretref"
)

// fileMax bounds a file with secrets or keys.
const fileMax = 1 << 20 // bytes

// readFile reads a secret from a file below a folder that a rule names. No symbolic link leads out
// of that folder, and nobody but the owner may be able to use the file.
func readFile(folder, path string) (seal.Text, error) {
	data, info, err := below(folder, path)
	if err != nil {
		return "", err
	}
	if err := private(path, info); err != nil {
		return "", err
	}
	return oneText(data), nil
}

// below reads a file below a folder.
func below(folder, path string) ([]byte, fs.FileInfo, error) {
	name, err := filepath.Rel(folder, path)
	if err != nil || !filepath.IsLocal(name) {
		return nil, nil, errors.New("it is not below the folder of the rule that allows it")
	}
	return files.Within(folder, name, fileMax)
}

// private returns an error if others than its owner may use a file, or if its owner is a stranger.
func private(path string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, so others can use it: chmod 400 %s", path, mode, path)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d: want root, or the user of this process", path, s.Uid)
	}
	return nil
}

// oneText returns the text of a file without the newline at its end.
func oneText(data []byte) seal.Text {
	return seal.Text(strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"))
}

// privateFile reads a file of the node's own login: nobody but its owner may be able to use it.
func privateFile(path string) (seal.Text, error) {
	data, info, err := files.Owned(path, fileMax)
	if err == nil {
		err = private(path, info)
	}
	if err != nil {
		return "", err
	}
	text := oneText(data)
	if text == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return text, nil
}

// credential reads a credential of the service.
func (s *Sources) credential(name string) (seal.Text, error) {
	if s.credentials == "" {
		return "", errors.New("systemd gave this process no credentials: add " +
			"LoadCredential= to the unit of the master, and start it anew")
	}
	data, _, err := files.Within(s.credentials, name, fileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the service has no such credential: add LoadCredential=%s:… to the unit "+
			"of the master, and start it anew", name)
	}
	return oneText(data), err
}

// readAge reads a secret from a file that age has encrypted for an identity of this node.
func readAge(identities, folder string, ref secretref.Ref) (seal.Text, error) {
	if identities == "" {
		return "", errors.New("this node has no age.identities to decrypt it with")
	}
	keys, err := privateFile(identities)
	if err != nil {
		return "", fmt.Errorf("age.identities: %w", err)
	}
	own, err := age.ParseIdentities(strings.NewReader(string(keys)))
	if err != nil {
		// The error of age may quote the line.
		return "", fmt.Errorf("age.identities: %s is no file of age-keygen", identities)
	}
	data, _, err := below(folder, ref.Path)
	if err != nil {
		return "", err
	}
	var sealed io.Reader = bytes.NewReader(data)
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte(armor.Header)) {
		sealed = armor.NewReader(sealed)
	}
	plain, err := age.Decrypt(sealed, own...)
	if err != nil {
		return "", fmt.Errorf("%s cannot be decrypted: it is encrypted for other keys than those of "+
			"age.identities, or is no file of age", ref.Path)
	}
	text, err := io.ReadAll(io.LimitReader(plain, fileMax+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s is damaged", ref.Path)
	case len(text) > fileMax:
		return "", fmt.Errorf("%s has more than %d bytes", ref.Path, fileMax)
	case ref.Field == "":
		return oneText(text), nil
	}
	return fieldOf(text, ref.Field)
}

// fieldOf returns a field of a JSON object. No error repeats anything of the object.
func fieldOf(text []byte, field string) (seal.Text, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return "", errors.New("it is no JSON object, so it has no fields")
	}
	raw, ok := fields[field]
	var value *string
	switch {
	case !ok:
		return "", fmt.Errorf("it has no field %s", field)
	case json.Unmarshal(raw, &value) != nil || value == nil:
		return "", fmt.Errorf("its field %s is no text", field)
	}
	return seal.Text(*value), nil
}
