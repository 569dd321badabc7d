// Command sbom prints which modules are in a Go program, as CycloneDX 1.5 in JSON:
//
//	sbom -version 1.2.0 -time 1790000000 bin/muster
//
// It reads them from the program itself, so the list is of what was linked, not of what go.mod
// names. The same program gives the same bytes.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

type bom struct {
	Format       string      `json:"bomFormat"`
	SpecVersion  string      `json:"specVersion"`
	Serial       string      `json:"serialNumber"`
	Version      int         `json:"version"`
	Metadata     metadata    `json:"metadata"`
	Components   []component `json:"components"`
	Dependencies []depends   `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Purl       string     `json:"purl,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type depends struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

func main() {
	version := flag.String("version", "unknown", "`version` of the program")
	at := flag.Int64("time", 0, "`seconds` since 1970 of the time of the list")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "sbom: name one program, such as bin/muster")
		os.Exit(2)
	}
	if err := write(os.Stdout, flag.Arg(0), *version, time.Unix(*at, 0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(w io.Writer, path, version string, at time.Time) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s is no Go program: %w", path, err)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(list(info, filepath.Base(path), version, sha256.Sum256(raw), at))
}

func list(info *debug.BuildInfo, name, version string, sum [32]byte, at time.Time) bom {
	self := component{Type: "application", Ref: name, Name: name, Version: version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOARCH", "GOOS", "CGO_ENABLED":
			self.Properties = append(self.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	// The serial number is made of the hash: version 8 of a UUID, for forms of one's own.
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	b := bom{Format: "CycloneDX", SpecVersion: "1.5", Version: 1,
		Serial:   fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]),
		Metadata: metadata{at.UTC().Format(time.RFC3339), self}}
	std := strings.TrimPrefix(info.GoVersion, "go")
	b.Components = append(b.Components, component{Type: "library", Ref: "std@" + std, Name: "std",
		Version: std, Purl: "pkg:golang/std@" + std})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		b.Components = append(b.Components, component{Type: "library", Ref: purl, Name: m.Path,
			Version: m.Version, Purl: purl, Properties: []property{{"go:sum", m.Sum}}})
	}
	on := make([]string, 0, len(b.Components))
	for _, c := range b.Components {
		on = append(on, c.Ref)
	}
	b.Dependencies = []depends{{name, on}}
	return b
}
