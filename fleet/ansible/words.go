package ansible

import (
	"errors"
	"strings"
)

// splitWords splits a line into words like Python's shlex with comments enabled:
// it removes quotes, which protect blanks, a backslash protects the next byte, and '#' ends
// the line, even in the middle of a word.
func splitWords(line string) ([]string, error) {
	var words []string
	var word []byte
	in := false      // inside a word, which may be empty: ""
	quote := byte(0) // the quote that is open, or 0
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'':
			i++
			if i == len(line) {
				return nil, errors.New("ends in a backslash")
			}
			if quote != 0 && line[i] != '\\' && line[i] != quote {
				word = append(word, '\\')
			}
			word, in = append(word, line[i]), true
		case quote != 0:
			word = append(word, c)
		case c == '"' || c == '\'':
			quote, in = c, true
		case c == '#':
			i = len(line)
		case strings.IndexByte(" \t\r\n", c) >= 0:
			if in {
				words, word, in = append(words, string(word)), nil, false
			}
		default:
			word, in = append(word, c), true
		}
	}
	if quote != 0 {
		return nil, errors.New("has a quote that is not closed")
	}
	if in {
		words = append(words, string(word))
	}
	return words, nil
}
