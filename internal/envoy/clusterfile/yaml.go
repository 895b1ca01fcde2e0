package clusterfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// prune reports what no file may contain, and removes it from below the node. Aliases would let a
// small file expand to gigabytes. A value whose type JSON does not have becomes a string.
func (d *decoder) prune(node *yaml.Node) (ok bool) {
	switch {
	case node.Kind == yaml.AliasNode:
		d.add(node, "the alias *%s is not supported: want the content that it refers to", printable.Line(node.Value, maxShown))
	case node.Anchor != "":
		d.add(node, "the anchor &%s is not supported", printable.Line(node.Anchor, maxShown))
	case strings.HasPrefix(node.Tag, "!") && !strings.HasPrefix(node.Tag, "!!"):
		d.add(node, "the tag %s is not supported", printable.Quote(node.Tag))
	default:
		ok = node.Kind != yaml.ScalarNode || d.pruneScalar(node)
	}
	switch node.Kind {
	case yaml.SequenceNode:
		node.Content = slices.DeleteFunc(node.Content, func(n *yaml.Node) bool { return !d.prune(n) })
	case yaml.MappingNode:
		d.prunePairs(node)
	}
	return ok
}

func (d *decoder) prunePairs(node *yaml.Node) {
	kept, lines := node.Content[:0], make(map[string]int)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch ok := d.prune(value); {
		case !d.prune(key) || !d.checkKind(key, yaml.ScalarNode):
		case lines[key.Value] > 0:
			d.add(key, "%s is already given on line %d", printable.Quote(key.Value), lines[key.Value])
		default:
			if lines[key.Value], key.Tag = key.Line, "!!str"; ok {
				kept = append(kept, key, value)
			}
		}
	}
	node.Content = kept
}

func (d *decoder) pruneScalar(node *yaml.Node) (ok bool) {
	switch tag := node.ShortTag(); tag {
	case "!!float", "!!int", "!!bool", "!!null":
		var value any
		if node.Style&yaml.TaggedStyle == 0 && tag != "!!float" {
			return true
		}
		if node.Decode(&value) != nil {
			d.add(node, "%s is not of the type %s", printable.Quote(node.Value), tag)
			return false
		}
		if f, ok := value.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
			node.Value, node.Tag = strings.ReplaceAll(strings.TrimPrefix(fmt.Sprint(f), "+"), "Inf", "Infinity"), "!!str"
		}
	default:
		node.Tag = "!!str"
	}
	return true
}

// syntaxError returns an error of the YAML parser with a position. JSON gets errors of the JSON
// parser, which are more exact.
func (d *decoder) syntaxError(data []byte, err error) error {
	at, text := locateYAML(data, err.Error())
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		if e, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(data, new(any))); ok {
			at, text = positionAfter(data[:max(e.Offset-1, 0)]), e.Error()
		}
	}
	at.File = d.path
	d.problems.AddAt(at, "syntax error: %s", text)
	return d.problems.Err()
}

// maxReparsed is the maximum length of data that is parsed repeatedly.
const maxReparsed = 32 << 10

// locateYAML splits an error of the YAML parser into a position and a text. The parser gives no
// columns, and does not always give the line of the mistake: for "did not find expected key" and the
// like, it gives the line before the enclosing block, which can be far above. The mistake is then on
// the line at which the parser stopped reading.
//
// The character that causes any other error is the last one of the shortest beginning of the file
// that causes the same error.
func locateYAML(data []byte, message string) (at messages.Position, text string) {
	reported, text := splitLine(message)
	read, _ := firstError(data)
	ended := bytes.TrimRight(read, " \t\r\n")
	at = positionAfter(ended[:max(len(ended)-1, 0)])
	if strings.HasPrefix(text, "did not find expected") && max(reported, 1) < at.Line || text == "did not find expected node content" {
		if at.Column = firstColumn(data, at.Line); reported+1 < at.Line {
			text += fmt.Sprintf(" (in the block that begins on line %d)", reported+1)
		}
		return at, text
	}
	lowest := len(read) - 16                      // the parser reads up to four characters ahead
	if text == "found unexpected end of stream" { // a string begins on the line, most likely near its end
		begin := offset(data, max(reported, 1))
		line, _, _ := bytes.Cut(data[begin:], []byte("\n"))
		read, lowest = data[:begin+len(line)], begin+max(len(line)-200, 0)
	}
	for n := len(read) - 1; n > max(lowest, 0) && n < maxReparsed; n-- {
		if _, got := firstError(data[:n]); got != text {
			break
		}
		read = data[:n]
	}
	if at = positionAfter(read[:max(len(read)-1, 0)]); reported > 0 && reported != at.Line {
		at = messages.Position{Line: reported, Column: firstColumn(data, reported)}
	}
	return at, text
}

// splitLine splits an error of the YAML parser into the line that it gives, or 0, and the rest.
func splitLine(message string) (line int, text string) {
	text = strings.TrimPrefix(message, "yaml: ")
	if n, _ := fmt.Sscanf(text, "line %d:", &line); n > 0 {
		_, text, _ = strings.Cut(text, ": ")
	}
	return line, text
}

// firstError returns the text of the parser's first error, and what the parser has read until then.
func firstError(data []byte) (read []byte, text string) {
	reader := bytes.NewReader(data)
	documents := yaml.NewDecoder(byteByByte{reader})
	for {
		if err := documents.Decode(new(yaml.Node)); err != nil {
			_, text = splitLine(err.Error())
			return data[:len(data)-reader.Len()], text
		}
	}
}

// byteByByte is a reader that returns one byte at a time, so that the parser cannot fill its
// buffer.
type byteByByte struct{ io.Reader }

func (r byteByByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }

// positionAfter returns the position of the character that follows text. Columns count characters.
func positionAfter(text []byte) messages.Position {
	last := text[bytes.LastIndexByte(text, '\n')+1:]
	return messages.Position{Line: bytes.Count(text, []byte("\n")) + 1, Column: utf8.RuneCount(last) + 1}
}

// offset returns the offset at which a line begins.
func offset(data []byte, line int) (at int) {
	for range line - 1 {
		at += bytes.IndexByte(data[at:], '\n') + 1
	}
	return at
}

func firstColumn(data []byte, line int) int {
	text, _, _ := bytes.Cut(data[offset(data, line):], []byte("\n"))
	return len(text) - len(bytes.TrimLeft(text, " \t")) + 1
}
