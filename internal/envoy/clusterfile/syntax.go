package clusterfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

func syntaxError(path string, data []byte, err error) error {
	problems := &Error{Path: path}
	if e, ok := errors.AsType[*json.SyntaxError](jsonError(data)); ok {
		line, column := positionAfter(data[:max(e.Offset-1, 0)])
		problems.add(line, column, "syntax error: %v", e)
		return problems.err()
	}
	line, column, text := yamlPosition(data, err.Error())
	problems.add(line, column, "syntax error: %s", text)
	return problems.err()
}

// jsonError returns the JSON syntax error in data, or nil if data does not look like JSON.
func jsonError(data []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil
	}
	var value any
	return json.Unmarshal(data, &value)
}

var lineNumber = regexp.MustCompile(`^line (\d+): `)

// parserErrors lists the errors of the YAML parser. All other errors come from the YAML scanner,
// and a single character causes them.
var parserErrors = map[string]bool{
	"did not find expected key":              true,
	"did not find expected node content":     true,
	"did not find expected '-' indicator":    true,
	"did not find expected ',' or ']'":       true,
	"did not find expected ',' or '}'":       true,
	"did not find expected <document start>": true,
}

// yamlPosition returns the position and text of a YAML error.
//
// An error of the scanner contains the correct line, except for line 1. An error of the parser
// contains the line before the enclosing block, which can be far above the mistake. yamlPosition
// then returns the position at which the parser stopped reading.
func yamlPosition(data []byte, message string) (line, column int, text string) {
	reported, message := splitLine(message)
	if message == "found unexpected end of stream" {
		reported = max(reported, 1)
	}
	data, skipped := fromNearbyLine(data, reported, message)
	reported -= skipped
	line, column, text = locateError(data, reported, message, skipped)
	return line + skipped, column, text
}

func locateError(data []byte, reported int, message string, skipped int) (line, column int, text string) {
	if message == "found unexpected end of stream" {
		return reported, openingQuote(data, reported, message), message
	}
	read := readUntilError(data)
	switch {
	case parserErrors[message]:
		line, _ = positionAfter(bytes.TrimRight(read, " \t\r\n"))
		if reported+1 < line {
			message += " (in the block that begins on line " + strconv.Itoa(skipped+reported+1) + ")"
		}
		return line, firstColumn(data, line), message
	case strings.HasPrefix(message, "unknown anchor '"):
		name := strings.Split(message, "'")[1]
		line, column = positionAfter(read[:max(bytes.LastIndex(read, []byte("*"+name)), 0)])
		return line, column, message
	}
	line, column = positionAfter(data[:offendingOffset(data, len(read), message)])
	if reported <= 0 || reported == line {
		return line, column, message
	}
	return reported, firstColumn(data, reported), message
}

// fromNearbyLine returns data from a line shortly before the error on, and the number of skipped
// lines. The data is then parsed many times to find the position of the error, which is faster
// without the skipped lines. If skipping lines would change the error, fromNearbyLine skips none.
func fromNearbyLine(data []byte, reported int, message string) (rest []byte, skipped int) {
	for lines := 8; lines < reported && !parserErrors[message]; lines *= 8 {
		skipped, rest = leastIndented(data, reported-lines, reported)
		if line, text := firstError(rest); text == message && max(line, 1)+skipped == reported {
			return rest, skipped
		}
	}
	return data, 0
}

// leastIndented finds the line with the smallest indentation in a range of lines. It returns data
// from this line on, and the number of lines before it.
func leastIndented(data []byte, first, last int) (skipped int, rest []byte) {
	at, least := offset(data, first), -1
	for line := first; line <= last; line++ {
		if column := firstColumn(data[at:], 1); least < 0 || column < least {
			least, skipped, rest = column, line-1, data[at:]
		}
		at += bytes.IndexByte(data[at:], '\n') + 1
	}
	return skipped, rest
}

// splitLine splits the text of an error into the line number, or 0 if there is none, and the rest.
func splitLine(message string) (line int, rest string) {
	message = strings.TrimPrefix(message, "yaml: ")
	if m := lineNumber.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = strings.TrimPrefix(message, m[0])
	}
	return line, message
}

// maxReadAhead is the maximum number of bytes that the scanner reads beyond the offending
// character: four characters of up to four bytes each.
const maxReadAhead = 16

// offendingOffset returns the offset of the character that causes the scanner's error. This is the
// last character of the shortest prefix of data that causes the same error.
func offendingOffset(data []byte, read int, message string) int {
	if read > maxReparsed {
		return read - 1 // an estimate: the line is usually correct
	}
	end := read
	for n := read - 1; n > max(read-maxReadAhead, 0) && sameError(data[:n], message); n-- {
		end = n
	}
	return end - 1
}

// openingQuote returns the column of the quote that opens an unterminated string in the given line.
// This is the last character of the shortest prefix of data that causes the same error.
func openingQuote(data []byte, line int, message string) int {
	begin := offset(data, line)
	end := len(data)
	if i := bytes.IndexByte(data[begin:], '\n'); i >= 0 {
		end = begin + i
	}
	if end-begin > maxQuoteSearch || end > maxReparsed {
		return firstColumn(data, line)
	}
	for i := end - 1; i >= begin; i-- {
		if (data[i] == '"' || data[i] == '\'') && !sameError(data[:i], message) && sameError(data[:i+1], message) {
			_, column := positionAfter(data[:i])
			return column
		}
	}
	return firstColumn(data, line)
}

// maxQuoteSearch is the maximum length of a line that openingQuote searches.
const maxQuoteSearch = 1 << 10

// maxReparsed is the maximum length of data that is parsed repeatedly.
const maxReparsed = 16 << 10

func sameError(data []byte, message string) bool {
	_, got := firstError(data)
	return got == message
}

func firstError(data []byte) (line int, message string) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		switch err := decoder.Decode(&node); {
		case errors.Is(err, io.EOF):
			return 0, ""
		case err != nil:
			return splitLine(err.Error())
		}
	}
}

// maxExact is the maximum length of data that readUntilError reads byte by byte. This is slow, but
// tells exactly how much the parser has read.
const maxExact = 1 << 20

func readUntilError(data []byte) []byte {
	reader := bytes.NewReader(data)
	decoder := yaml.NewDecoder(reader)
	if len(data) <= maxExact {
		decoder = yaml.NewDecoder(byteByByte{reader})
	}
	for {
		var node yaml.Node
		if decoder.Decode(&node) != nil {
			return data[:len(data)-reader.Len()]
		}
	}
}

// byteByByte is a reader that returns one byte at a time, so that the parser cannot fill its
// buffer.
type byteByByte struct{ io.Reader }

func (r byteByByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

// positionAfter returns the line and column of the character that follows text. Columns count
// characters.
func positionAfter(text []byte) (line, column int) {
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	return bytes.Count(text, []byte("\n")) + 1, utf8.RuneCount(last) + 1
}

func offset(data []byte, line int) int {
	at := 0
	for range line - 1 {
		at += bytes.IndexByte(data[at:], '\n') + 1
	}
	return at
}

func firstColumn(data []byte, line int) int {
	text, _, _ := bytes.Cut(data[offset(data, line):], []byte("\n"))
	return len(text) - len(bytes.TrimLeft(text, " \t")) + 1
}
