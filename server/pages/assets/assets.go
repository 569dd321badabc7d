// Package assets has the files that the pages of the server need in a browser: styles, scripts, an
// icon. All of them are written here, and none is fetched from elsewhere. FILES lists each with its
// version, its licence and its hash; a test holds the list against the files.
//
// Floor 0: may import internal/wording, and nothing else of the house.
package assets

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed muster.css live.js map.js form.js passkey.js muster.svg
var files embed.FS

// Prefix begins the path of each file.
const Prefix = "/assets/"

// hashes has the hash of each file, by its name.
var hashes = hashAll()

func hashAll() map[string]string {
	list, err := files.ReadDir(".")
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, f := range list {
		text, err := files.ReadFile(f.Name())
		if err == nil {
			sum := sha256.Sum256(text)
			out[f.Name()] = hex.EncodeToString(sum[:])
		}
	}
	return out
}

// hashShown is the part of a hash that stands in a path.
const hashShown = 12

// URL returns the path of a file. It has the hash of the content, so that a browser may keep the
// file for ever.
func URL(name string) string {
	hash := hashes[name]
	return Prefix + hash[:min(hashShown, len(hash))] + "/" + name
}

// Serve answers with a file.
func Serve(w http.ResponseWriter, r *http.Request) {
	hash, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Prefix), "/")
	text, err := files.ReadFile(name)
	if err != nil || r.URL.Path != URL(name) || hash == "" {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	// A browser that does not read the file has gone.
	_, _ = w.Write(text)
}
