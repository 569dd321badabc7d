package scripts_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/scripts"
)

const (
	sumA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	sumB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

const image = `
name: image
arguments:
  image: {type: file, description: the firmware}
steps:
  - {name: key, upload: {blob: "sha256:` + sumA + `", to: /tmp/key}}
  - {name: image, upload: {from: image, to: /tmp/image}}
`

func TestParseBlob(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"sha256:" + sumA:                  sumA,
		"sha256:" + strings.ToUpper(sumA): sumA,
		"":                                "", sumA: "", "sha256:": "", "sha256:" + sumA[1:]: "", "sha256:" + sumA + "a": "",
		"sha256:" + sumA[1:] + "g": "", "sha1:" + sumA: "", " sha256:" + sumA: "",
	} {
		got, err := scripts.ParseBlob(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q gives %q, %v", name, got, err)
		}
	}
	if got := scripts.BlobName(sumA); got != "sha256:"+sumA {
		t.Errorf("its name is %q", got)
	}
}

func TestBlobsOfATask(t *testing.T) {
	t.Parallel()
	r := mustParse(t, image)
	args := map[string]string{"image": "sha256:" + sumB}
	if diff := cmp.Diff([]string{sumA, sumB}, r.Blobs(args)); diff != "" {
		t.Errorf("needed: -want +got:\n%s", diff)
	}
	v, err := r.BindGiven(scripts.Given{Args: args, Stored: map[string]int64{sumA: 1, sumB: 2 << 30, "other": 3}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r.Freeze(v))
	if err != nil {
		t.Fatal(err)
	}
	var f scripts.Frozen
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{sumA, sumB}, f.Blobs()); diff != "" {
		t.Errorf("of the task: -want +got:\n%s", diff)
	}
	for i, want := range []scripts.Upload{
		{To: "/tmp/key", Mode: 0o644, SHA256: sumA, Size: 1, Blob: true},
		{To: "/tmp/image", Mode: 0o644, SHA256: sumB, Size: 2 << 30, Blob: true},
	} {
		got, err := f.Step(i, fleet.Host{Name: "a"}, scripts.Context{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, got.Upload); diff != "" || !got.Repeatable {
			t.Errorf("step %d: repeatable %t, -want +got:\n%s", i, got.Repeatable, diff)
		}
	}
	// A file that the task carries itself is none.
	v, err = r.BindGiven(scripts.Given{Files: map[string][]byte{"image": []byte("x")}, Stored: map[string]int64{sumA: 1}})
	if diff := cmp.Diff([]string{sumA}, r.Freeze(v).Blobs()); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

func TestBindMissesBlobs(t *testing.T) {
	t.Parallel()
	r := mustParse(t, image)
	_, err := r.Bind(map[string]string{"image": "sha256:" + sumB}, nil)
	want := "blob sha256:" + sumA + " is not there: put it there with `muster blob put FILE`\n" +
		"blob sha256:" + sumB + " is not there: put it there with `muster blob put FILE`"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = r.BindGiven(scripts.Given{Args: map[string]string{"image": "sha256:" + sumB},
		Files: map[string][]byte{"image": nil}, Stored: map[string]int64{sumA: 1, sumB: 1}})
	if err == nil || !strings.Contains(err.Error(), `argument "image" is given twice`) {
		t.Errorf("got %v", err)
	}
}

func TestParseRefusesWrongBlobs(t *testing.T) {
	t.Parallel()
	for upload, want := range map[string]string{
		"{blob: abc, to: /x}":                               `blob: "abc" is no name of a blob`,
		"{blob: 'sha256:" + sumA + "', from: a, to: /x}":    "blob and from exclude each other",
		"{blob: 'sha256:" + sumA + "', content: a, to: /x}": "content and blob exclude each other",
		"{blob: ['sha256:" + sumA + "'], to: /x}":           "blob: want a text, got a list",
		"{to: /x}": "upload has nothing to send",
	} {
		_, err := scripts.Parse("x", []byte("name: a\nsteps:\n- {name: b, upload: "+upload+"}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", upload, err, want)
		}
	}
}
