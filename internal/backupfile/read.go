package backupfile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"filippo.io/age"
)

// Check says what is wrong with the MAC over the sum of a backup; nil: a server made it.
type Check func(sum, mac string) error

// The bounds of a part, which only a damaged backup exceeds. A field can be a value of Redis.
const (
	fieldsMax = 1 << 20
	fieldMax  = 512 << 20 // bytes, as in Redis
)

// ErrCut is wrapped if a backup ends too early.
var ErrCut = errors.New("it ends too early: it was cut, or never finished")

// Read passes the parts of a backup to f, in their order. The fields are valid until f returns. The
// error is nil only if the backup is whole and a server wrote all of it: before that, nobody may
// believe the parts that f got.
func Read(in io.Reader, own Identities, check Check,
	f func(kind Kind, fields [][]byte) error) error {
	plain, err := age.Decrypt(in, own...)
	if none := new(age.NoIdentityMatchError); errors.As(err, &none) {
		return errors.New("it is encrypted for others: none of these identities can read it")
	}
	if err != nil {
		return fmt.Errorf("it is no backup, or was changed: %w", err)
	}
	unpack, err := gzip.NewReader(plain)
	if err != nil {
		return cut(err)
	}
	r := reader{in: bufio.NewReaderSize(unpack, bufferSize), sum: sha256.New()}
	for {
		before := hex.EncodeToString(r.sum.Sum(nil))
		kind, fields, err := r.part()
		if err != nil {
			return cut(err)
		}
		if kind != tail {
			if err := f(kind, fields); err != nil {
				return err
			}
			continue
		}
		if len(fields) != 1 {
			return errors.New("its end is damaged")
		}
		if err := check(before, string(fields[0])); err != nil {
			return fmt.Errorf("the backup is not believed: %w", err)
		}
		return r.end()
	}
}

// cut explains the end of a file that came too early. age says of it that a chunk is missing.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return fmt.Errorf("it was changed or cut: %w", err)
}

// reader reads parts, and adds up what it has read.
type reader struct {
	in  *bufio.Reader
	sum hash.Hash
	buf bytes.Buffer
}

// ReadByte is for binary.ReadUvarint.
func (r *reader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.sum.Write([]byte{b}) // never fails
	}
	return b, err
}

func (r *reader) part() (Kind, [][]byte, error) {
	kind, err := r.ReadByte()
	if err != nil {
		return 0, nil, err
	}
	n, err := r.number(fieldsMax)
	if err != nil {
		return 0, nil, err
	}
	r.buf.Reset()
	var ends []int
	for range n {
		size, err := r.number(fieldMax)
		if err != nil {
			return 0, nil, err
		}
		// Memory grows with what comes, not with what a damaged number says.
		if _, err := io.CopyN(io.MultiWriter(&r.buf, r.sum), r.in, int64(size)); err != nil {
			return 0, nil, err
		}
		ends = append(ends, r.buf.Len())
	}
	fields, from := make([][]byte, n), 0
	for i, end := range ends {
		fields[i] = r.buf.Bytes()[from:end:end]
		from = end
	}
	return Kind(kind), fields, nil
}

func (r *reader) number(most uint64) (int, error) {
	n, err := binary.ReadUvarint(r)
	if err == nil && n > most {
		err = fmt.Errorf("a part has the size %d", n)
	}
	return int(n), err
}

// end checks that nothing follows; only then age has seen the end of the file.
func (r *reader) end() error {
	_, err := r.in.ReadByte()
	switch {
	case err == nil:
		return errors.New("something follows behind its end")
	case errors.Is(err, io.EOF):
		return nil
	}
	return cut(err)
}
