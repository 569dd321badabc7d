package serverkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"sync"
)

// stampMAC is the size of the MAC in a stamp, in bytes: half of a SHA-256, as RFC 2104 allows.
const stampMAC = 16

// Stamps makes and checks short MACs for one use: a node makes one for each job. It derives the
// keys once. The zero value has no key.
type Stamps struct {
	use          Use
	installation string
	list         []stampKey
}

// stampKey is one line of the file, for one use. It keeps hashes that have read the key.
type stampKey struct {
	id     []byte
	hashes *sync.Pool
}

// Stamps returns what makes and checks short MACs for a use.
func (k Keys) Stamps(use Use) Stamps {
	s := Stamps{use: use, installation: k.installation}
	for _, one := range k.list {
		id, err := hex.DecodeString(one.id)
		if err != nil {
			panic(err) // derive made it
		}
		key := derive(one.raw, "stamp of "+string(use), sha256.Size)
		s.list = append(s.list, stampKey{id, &sync.Pool{New: func() any {
			return hmac.New(sha256.New, key)
		}}})
	}
	return s
}

// Make returns the stamp of these parts: 27 letters, digits, - and _. It is empty without a key.
func (s Stamps) Make(parts ...string) string {
	if len(s.list) == 0 {
		return ""
	}
	own := s.list[0]
	var stamp [idSize + stampMAC]byte
	copy(stamp[:], own.id)
	copy(stamp[idSize:], own.mac(s.installation, parts))
	return encoding.EncodeToString(stamp[:])
}

// Check says what is wrong with a stamp of these parts; nil: an owner of the key made it.
func (s Stamps) Check(stamp string, parts ...string) error {
	sum, err := encoding.Strict().DecodeString(stamp)
	if err != nil || len(sum) != idSize+stampMAC {
		return errors.New("its MAC is of no form that is known here")
	}
	for _, one := range s.list {
		if string(one.id) != string(sum[:idSize]) {
			continue
		}
		if !hmac.Equal(sum[idSize:], one.mac(s.installation, parts)) {
			return errors.New("it is not what a node wrote")
		}
		return nil
	}
	return errors.New("it was made with a key that is not there")
}

// mac binds each part with its length, as the MAC of a key does, and returns the first half.
func (k stampKey) mac(installation string, parts []string) []byte {
	text := make([]byte, 0, 512)
	text = bind(text, installation)
	for _, part := range parts {
		text = bind(text, part)
	}
	h := k.hashes.Get().(hash.Hash)
	h.Reset()
	h.Write(text) // never fails
	sum := h.Sum(make([]byte, 0, sha256.Size))
	k.hashes.Put(h)
	return sum[:stampMAC]
}

func bind(text []byte, part string) []byte {
	return append(binary.BigEndian.AppendUint64(text, uint64(len(part))), part...)
}
