package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

func sumOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// uploadBlob makes the task one that uploads a stored content.
func (s *stand) uploadBlob(t *testing.T, text string) {
	t.Helper()
	made := spec(t, scripts.Step{Name: "put", Kind: scripts.KindUpload, Timeout: stepTime,
		Upload: &scripts.UploadSpec{Blob: sumOf(text), To: "/tmp/image", Mode: 0o640}})
	var f scripts.Frozen
	if err := json.Unmarshal(made.Action, &f); err != nil {
		t.Fatal(err)
	}
	f.Values.Blobs = map[string]int64{sumOf(text): int64(len(text))}
	var err error
	if made.Action, err = json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	s.q.specs[task1] = made
}

// blob is a stored content.
type blob struct{ *bytes.Reader }

func (blob) Close() error { return nil }

// Each case is an upload of a stored content, most with a fault.
func TestUploadsOfBlobs(t *testing.T) {
	const text = "firmware"
	for _, tt := range []struct {
		name string
		err  error
		want jobs.Result
	}{
		{name: "there", want: end(jobs.Succeeded, "", class(jobs.ClassNone))},
		{name: "gone", err: fmt.Errorf("part 2 of 3: %w", jobs.ErrNoBlob), want: end(jobs.Failed,
			"sha256:"+sumOf(text)+" is not stored any more, or not all of it: put it there again with "+
				"`muster blob put FILE`, then `muster retry`", class(jobs.ClassUser))},
		{name: "damaged", err: jobs.ErrBadBlob, want: end(jobs.Failed,
			"sha256:"+sumOf(text)+" is damaged: `muster blob rm --force`, put it there again with "+
				"`muster blob put FILE`, then `muster retry`", class(jobs.ClassUser))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.uploadBlob(t, text)
				s.hosts.upload = func(_ context.Context, _ fleet.Host, u remote.Upload) error {
					got, err := io.ReadAll(u.Content)
					if err != nil || string(got) != text || u.Size != int64(len(text)) {
						t.Errorf("sent %q, %d, %v", got, u.Size, err)
					}
					u.Progress(remote.Progress{Size: u.Size, Had: 3, Sent: u.Size - 3})
					return nil
				}
				if tt.err == nil {
					tt.want.Output = []byte("/tmp/image: sent 5 bytes of 8 bytes, 3 bytes were there already\n")
				}
				s.blobs = func(_ context.Context, sum string, size int64) (io.ReadSeekCloser, error) {
					if sum != sumOf(text) || size != int64(len(text)) {
						t.Errorf("asked for %s with %d bytes", sum, size)
					}
					return blob{bytes.NewReader([]byte(text))}, tt.err
				}
				got := s.one()
				tt.want.Job, tt.want.Token = "0000000001:fw1", 1
				if diff := cmp.Diff(tt.want, got, timeless); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			})
		})
	}
	t.Run("the node cannot get it at the moment", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *stand) {
			s.uploadBlob(t, text)
			s.blobs = func(context.Context, string, int64) (io.ReadSeekCloser, error) {
				return nil, errors.New("no space left on device")
			}
			if got := s.one(); got.Kind != jobs.KindRetry || !strings.Contains(got.Error, "no space left") {
				t.Errorf("got %+v, want another try", got)
			}
		})
	})
}
