package discovery

import "github.com/understudy-lb/understudy/internal/feed"

// receiver is the Receiver of a source.
type receiver struct{ *feed.Inlet }

// Parts implements Receiver.
func (r receiver) Parts(parts []Part) {
	err := checkParts(parts)
	if err == nil && parts[0].Name == "" {
		err = errNoName
	}
	if err != nil {
		r.Fail(err)
		return
	}
	var list []feed.Mechanism
	for _, p := range parts {
		list = append(list, p.mechanism())
	}
	r.Inlet.Parts(list)
}

// mechanism returns what the feed has to know of a part wherever it stands.
func (p Part) mechanism() feed.Mechanism {
	return feed.Mechanism{
		Name:             p.Name,
		Source:           p.Source,
		OutlierDetection: p.OutlierDetection,
		Start:            func(in *feed.Inlet) (feed.Watch, error) { return p.Source.Start(receiver{in}) },
	}
}
