package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// ReadGiven is [Read] for the argument of a command, which may also be a stream that the process
// was started with ([Stream]). A person may type the stream, so only the context bounds the wait.
func ReadGiven(ctx context.Context, path string, most int) ([]byte, error) {
	if path == "" {
		return nil, errNoName
	}
	if !Stream(path) {
		return Read(path, most)
	}
	f, _, err := OpenGiven(ctx, path)
	if err != nil {
		return nil, err
	}
	defer CloseGiven(f)
	return Wait(ctx, func() ([]byte, error) {
		data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
		if err == nil && len(data) > most {
			err = tooLarge(path, most)
		}
		return data, err
	})
}

// errNoName is the error for an empty name, which usually comes from a variable of a shell.
var errNoName = errors.New("the name of the file is empty, as of a variable that is not set: " +
	"want a path")

// Stream reports whether a path names something that the process was started with: the
// standard input, or what a shell puts in the place of <(command). The null device is one too:
// people name it to give nothing. Any other pipe or device is refused by [OpenGiven].
func Stream(path string) bool {
	if path == "-" || path == os.DevNull || path == stdin {
		return true
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if _, found := strings.CutPrefix(path, dir); found {
			info, err := os.Stat(path)
			return err == nil && !info.Mode().IsRegular()
		}
	}
	return false
}

const stdin = "/dev/stdin"

// OpenGiven opens what an argument names. To read a stream may take for ever: see [Wait].
func OpenGiven(ctx context.Context, path string) (*os.File, fs.FileInfo, error) {
	if path == "" {
		return nil, nil, errNoName
	}
	if !Stream(path) {
		return Open(path)
	}
	f := os.Stdin
	if path != "-" && path != stdin {
		var err error
		f, err = Wait(ctx, func() (*os.File, error) { return os.Open(path) })
		if err != nil {
			return nil, nil, err
		}
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, CloseGiven(f))
	}
	return f, info, nil
}

// CloseGiven closes what OpenGiven opened. The standard input stays: its number would go to
// the next file that is opened.
func CloseGiven(f *os.File) error {
	if f == os.Stdin {
		return nil
	}
	return f.Close()
}

// Wait does something that may take for ever, and leaves it alone when the context ends.
func Wait[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := do()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
