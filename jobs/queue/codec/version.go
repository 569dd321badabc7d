package codec

import (
	"fmt"
	"strconv"
	"strings"
)

// redisMin is the oldest Redis whose scripts have all that ours use.
const redisMin = 7

// OldEnough refuses a Redis that is too old, before one of its answers is misunderstood.
// A server that reports no version is accepted.
func OldEnough(version string) error {
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err == nil && n < redisMin {
		return fmt.Errorf("this is Redis %s: want Redis %d.0 or later", version, redisMin)
	}
	return nil
}
