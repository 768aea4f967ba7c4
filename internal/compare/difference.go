package compare

import "reflect"

// Difference is one field in which a live object does not have what is wanted.
type Difference struct {
	// Path is the path of the field, as in messages of the API server, for example spec.containers[name=web].image.
	Path string
	// Want is the wanted value as JSON. It is empty if the live value must be absent.
	Want string
	// Have is the live value as JSON. It is empty if the live object has no value there.
	Have string
}

// differs records that the live value is not as wanted. It returns true if the walk is to go on.
func (c *comparison) differs(at place, want, have reflect.Value) bool {
	var d Difference
	if c.collects && want.IsValid() {
		d.Want = c.text(want)
	}
	if c.collects && c.tree(have) != nil && (c.trees || !isUnset(have, true)) {
		d.Have = c.text(have)
	}
	return c.record(at, d)
}

// record records a difference. It returns true if the walk is to go on.
func (c *comparison) record(at place, d Difference) bool {
	c.different = true
	if c.collects {
		d.Path = at.path.String()
		c.found = append(c.found, d)
	}
	return c.collects
}

// text returns a value as JSON.
func (c *comparison) text(v reflect.Value) string {
	b, err := appendJSON(nil, c.tree(v))
	if err != nil {
		return err.Error()
	}
	return string(b)
}
