package clusterfile

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/understudy-lb/understudy/internal/envoy/messages"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

// parseYAML returns the root of the document, without anything that isn't allowed in a file. It
// returns nil if the document is invalid, or if there's more than one in the file.
func (d *decoder) parseYAML(data []byte) *yaml.Node {
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	err := documents.Decode(&first)
	isEmpty := err != nil || isNull(first.Content[0])
	if err == nil {
		err = documents.Decode(&second)
	}
	e, isSyntax := errors.AsType[*yaml.LoadError](err)
	switch {
	case isSyntax:
		context := ""
		if e.ContextMark.Line > 0 && e.ContextMark != e.Mark {
			context = fmt.Sprintf(" %s that begins at %d:%d", e.ContextMsg, e.ContextMark.Line, e.ContextMark.Column)
		}
		at := messages.Position{File: d.path, Line: e.Mark.Line, Column: max(e.Mark.Column, 1)}
		if at.Line == 0 { // for characters that YAML doesn't allow, all we get is the index
			before := data[:min(e.Mark.Index, len(data))]
			at.Line, at.Column = 1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
		}
		d.problems.AddAt(at, "syntax error: %s%s", e.Message, context)
	case err == nil:
		d.add(&second, "a second document begins here, want one document in a file")
	case isEmpty:
		d.add(&first, "the file is empty, want a ClusterLoadAssignment, or clusters")
	case d.prune(first.Content[0]):
		return first.Content[0]
	}
	return nil
}

// prune reports and removes anything that isn't allowed in a file. For example, a small file could
// expand to gigabytes with aliases. Values of types that JSON doesn't have become strings.
func (d *decoder) prune(node *yaml.Node) (ok bool) {
	switch tag := node.ShortTag(); {
	case node.Kind == yaml.AliasNode:
		d.add(node, "the alias *%s is not supported: want the content that it refers to", printable.Line(node.Value, maxShown))
	case node.Anchor != "":
		d.add(node, "the anchor &%s is not supported", printable.Line(node.Anchor, maxShown))
	case node.Style&yaml.TaggedStyle != 0:
		d.add(node, "the tag %s is not supported", printable.Quote(node.Tag))
	default:
		ok = true
		if hasJSON := tag == "!!int" || tag == "!!bool" || tag == "!!null" || tag == "!!float" && !strings.ContainsAny(node.Value, "nN"); node.Kind == yaml.ScalarNode && !hasJSON {
			node.Tag = "!!str"
		}
	}
	if node.Kind == yaml.SequenceNode {
		node.Content = slices.DeleteFunc(node.Content, func(n *yaml.Node) bool { return !d.prune(n) })
	}
	if node.Kind != yaml.MappingNode {
		return ok
	}
	kept, first := node.Content[:0], make(map[string]*yaml.Node)
	for key, value := range pairs(node) {
		switch ok := d.prune(value); {
		case !d.prune(key) || !d.checkKind(key, yaml.ScalarNode):
		case first[key.Value] != nil:
			d.add(key, "%s is already given on line %d", printable.Quote(key.Value), first[key.Value].Line)
		default:
			if first[key.Value], key.Tag = key, "!!str"; ok {
				kept = append(kept, key, value)
			}
		}
	}
	node.Content = kept
	return ok
}

func pairs(node *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; node.Kind == yaml.MappingNode && i < len(node.Content); i += 2 {
			if !yield(node.Content[i], node.Content[i+1]) {
				return
			}
		}
	}
}

// entry finds a field by its name in snake case. The file may use snake case or camel case.
func entry(node *yaml.Node, name string) (key, value *yaml.Node) {
	plain := strings.ReplaceAll(name, "_", "")
	for key, value := range pairs(node) {
		if strings.EqualFold(strings.ReplaceAll(key.Value, "_", ""), plain) {
			return key, value
		}
	}
	return nil, nil
}

func kindName(kind yaml.Kind) string {
	switch kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}

func describe(node *yaml.Node) string {
	switch {
	case isNull(node):
		return "nothing"
	case node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str":
		return printable.Quote(node.Value)
	case node.Kind == yaml.ScalarNode:
		return printable.Line(node.Value, maxShown)
	}
	return kindName(node.Kind)
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

const maxShown = 100 // errors truncate names and values to this
