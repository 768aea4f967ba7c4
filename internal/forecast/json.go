package forecast

// document is the JSON form of a report.
type document struct {
	Complete bool             `json:"complete"`
	Ended    string           `json:"ended,omitempty"`
	Kinds    []kindDocument   `json:"kinds"`
	Changes  []changeDocument `json:"changes"`
	// NotPlanned are changes that would not be made, or that are not known.
	NotPlanned []changeDocument `json:"notPlanned"`
	Skipped    []changeDocument `json:"skipped"`
	NotExact   []string         `json:"notExact"`
}

type kindDocument struct {
	Kind      string `json:"kind"`
	Objects   int    `json:"objects"`
	Change    int    `json:"change"`
	Unchanged int    `json:"unchanged"`
	Compare   int    `json:"compare"`
	Wait      int    `json:"wait"`
	Skipped   int    `json:"skipped"`
	Failed    int    `json:"failed"`
	Unknown   int    `json:"notKnown"`
	NotSeen   int    `json:"notLookedAt"`
}

// changeDocument is the JSON form of a group of equal changes. Fields about a single object describe the first object of the group.
type changeDocument struct {
	Action      string               `json:"action,omitempty"`
	Group       string               `json:"group,omitempty"`
	Kind        string               `json:"kind,omitempty"`
	Count       int                  `json:"count"`
	OwnerKind   string               `json:"ownerKind"`
	Owners      []string             `json:"owners"`
	Shown       string               `json:"shown,omitempty"` // the name of the child whose differences are shown
	Differences []differenceDocument `json:"differences,omitempty"`
	Vary        bool                 `json:"valuesVary,omitempty"`
	Effects     []string             `json:"effects,omitempty"`
	LosesData   bool                 `json:"losesData,omitempty"`
	After       string               `json:"after,omitempty"`
	Note        string               `json:"note,omitempty"`
	Reason      string               `json:"reason,omitempty"` // why the change would not be made, or is not known
}

// differenceDocument is the JSON form of a [Difference].
type differenceDocument struct {
	Path string `json:"path"`
	Have string `json:"have,omitempty"`
	Want string `json:"want,omitempty"`
}

func (r *Report) document() document {
	d := document{Complete: r.Ended == "", Ended: r.Ended, Kinds: []kindDocument{}, NotExact: r.limits()}
	for _, k := range r.kinds {
		d.Kinds = append(d.Kinds, kindDocument{
			Kind: k.kind, Objects: k.total, Change: k.changed, Unchanged: k.unchanged, Compare: k.compared,
			Wait: k.waits, Skipped: k.skipped, Failed: k.failed, Unknown: k.unknown, NotSeen: k.total - k.looked,
		})
	}
	d.Changes, d.NotPlanned, d.Skipped = documents(r.changes()), documents(r.notMade()), documents(r.skipped())
	return d
}

func documents(groups []*group) []changeDocument {
	all := make([]changeDocument, 0, len(groups))
	for _, g := range groups {
		c := g.change
		var differences []differenceDocument
		for _, d := range c.Differences {
			differences = append(differences, differenceDocument(d))
		}
		all = append(all, changeDocument{
			Action: c.Action, Group: c.Kind.Group, Kind: c.Kind.Kind, Count: g.count, OwnerKind: g.owner, Owners: g.owners, Shown: NameOf(c.Name),
			Differences: differences, Vary: g.differs, Effects: c.Effects, LosesData: c.LosesData, After: c.After, Note: c.Note, Reason: g.failure,
		})
	}
	return all
}
