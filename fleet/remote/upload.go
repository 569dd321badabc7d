package remote

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"time"
)

// Upload is a file to be put on a host.
type Upload struct {
	Path    string      // where: absolute, not a directory
	Mode    fs.FileMode // permission bits; all files start as 0600
	Size    int64       // of the content, in bytes
	SHA256  [sha256.Size]byte
	Content io.Reader       // Size bytes; its Read must not wait for long
	Bound   time.Duration   // how long it may take, as in Command
	Stop    <-chan struct{} // stops it, as in Command; no part of the file stays behind
}

// uploadScript writes stdin beside the file and moves it there only when its
// checksum is right: nobody ever sees half a file. It is given the path, the
// temporary name, the checksum and the mode.
//
// noclobber (set -C) makes the shell create the temporary file itself and follow
// no link that somebody put in its place. The traps for signals are there
// because some shells do not run the one for EXIT when a signal ends them.
const uploadScript = `umask 077
if [ -d "$1" ]; then
	printf '%s\n' "$1 is a directory" >&2
	exit 1
fi
trap 'rm -f "$2"' EXIT
trap 'exit 1' HUP INT TERM
set -C
cat > "$2" || exit 1
set -- "$@" $(sha256sum < "$2")
if [ "$5" != "$3" ]; then
	printf '%s\n' "sha256 on the host is $5, expected $3" >&2
	exit 1
fi
chmod "$4" "$2" && mv -f "$2" "$1"
`

// Upload puts a file on the host. What is at its path before is replaced in one
// step or stays as it is; its directory must exist. The error is an [Error].
func (c *Conn) Upload(ctx context.Context, u Upload) error {
	if err := u.check(); err != nil {
		return c.to.fault("upload", KindInvalid, err)
	}
	temporary := path.Join(path.Dir(u.Path), ".muster-"+strings.ToLower(rand.Text()))
	content := &counter{source: io.LimitReader(u.Content, u.Size)}
	result, err := c.run(ctx, "upload", Command{
		Shell: fmt.Sprintf("set -- %s %s %s %s\n%s", quote(u.Path), quote(temporary),
			quote(fmt.Sprintf("%x", u.SHA256)), quote(fmt.Sprintf("%04o", u.Mode)), uploadScript),
		Stdin:  content,
		Bound:  u.Bound,
		Stop:   u.Stop,
		litter: temporary,
	})
	switch {
	case err != nil:
		return err
	case result.ExitCode == 0:
		return nil
	case content.ended.Load() && content.n.Load() < u.Size:
		return c.to.faultSent("upload", KindInvalid,
			fmt.Errorf("%s: the content has only %d bytes of %d", u.Path, content.n.Load(), u.Size))
	}
	return c.to.faultSent("upload", KindFailed,
		fmt.Errorf("%s: exit %d: %s", u.Path, result.ExitCode, lastWords(result.Output)))
}

func (u Upload) check() error {
	var errs []error
	if !path.IsAbs(u.Path) || strings.HasSuffix(u.Path, "/") || strings.IndexByte(u.Path, 0) >= 0 {
		errs = append(errs, fmt.Errorf("path = %q: an absolute path of a file", u.Path))
	}
	if u.Mode&^fs.ModePerm != 0 {
		errs = append(errs, fmt.Errorf("mode = %s: only permission bits, 0000 to 0777", u.Mode))
	}
	if u.Size < 0 {
		errs = append(errs, fmt.Errorf("size = %d: it cannot be negative", u.Size))
	}
	if u.Content == nil {
		errs = append(errs, errors.New("there is no content"))
	}
	return errors.Join(errs...)
}

// lastWords is what a host said in the end, for an error text.
func lastWords(o Output) string {
	const most = 500
	text := o.Bytes()
	if len(text) > most {
		text = text[len(text)-most:]
	}
	if said := strings.TrimSpace(Printable(text)); said != "" {
		return said
	}
	return "it gave no reason"
}

// counter counts what was read. It may still be read when Run has returned.
type counter struct {
	source io.Reader
	n      atomic.Int64
	ended  atomic.Bool
}

// Read reads from the source.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.source.Read(p)
	c.n.Add(int64(n))
	if err == io.EOF {
		c.ended.Store(true)
	}
	return n, err
}
