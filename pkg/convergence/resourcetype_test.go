package convergence

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"reflect"
	"testing"
	"unsafe"
)

// message has a Type wherever a message between processes can have one.
type message struct {
	Type  Type
	Keys  []Key
	Count map[Type]int
}

func TestTypeRoundTrip(t *testing.T) {
	for name, sent := range map[string]message{
		"known": {EDS, []Key{{CDS, "a"}, {EDS, "b"}}, map[Type]int{LDS: 1, RDS: 2}},
		"open":  {TypeOf("Authorization"), []Key{{TypeOf("Address"), "a"}}, map[Type]int{TypeOf("Address"): 3}},
		"none":  {Keys: []Key{AskedFor()}, Count: map[Type]int{{}: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var throughGob, throughJSON message
			var stream bytes.Buffer
			if err := gob.NewEncoder(&stream).Encode(sent); err != nil {
				t.Fatal(err)
			}
			if err := gob.NewDecoder(&stream).Decode(&throughGob); err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(sent)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &throughJSON); err != nil {
				t.Fatal(err)
			}
			for how, got := range map[string]message{"gob": throughGob, "JSON": throughJSON} {
				if !reflect.DeepEqual(got, sent) {
					t.Errorf("through %s: %v, want %v", how, got, sent)
				}
			}
		})
	}
	if text, err := json.Marshal(map[Type]Type{EDS: RDS}); err != nil || string(text) != `{"EDS":"RDS"}` {
		t.Errorf("JSON = %s, %v", text, err)
	}
}

func TestType(t *testing.T) {
	if TypeOf("EDS") != EDS || TypeOf("") != (Type{}) || (Type{}).String() != "" || TypeOf("x").String() != "x" {
		t.Error("types of one name must be equal, and the zero value must be no type")
	}
	if CDS.Compare(EDS) >= 0 || EDS.Compare(EDS) != 0 || EDS.Compare(Type{}) <= 0 {
		t.Error("types are ordered by their names")
	}
	if size := unsafe.Sizeof(Type{}); size > 8 {
		t.Errorf("a Type has %d bytes; updates hold one for each resource", size)
	}
}
