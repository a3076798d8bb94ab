//! The vocabulary of the prompts: plain English words by class, one table. Every word is lower or upper case ASCII
//! letters only, so that no text made of them needs an escape in JSON.

/// Things, singular.
pub(super) const NOUNS: &str = "\
acre actor airport alarm alley almanac amplifier anchor ankle antenna apple apron archive arrow article atlas attic \
autumn avenue axle bakery balance balcony ballot banner barge barley barn barrel basin basket battery beacon beam \
bearing bell bench berry bicycle blanket blossom board boiler border bottle boulder bowl bracket branch brass bread \
brick bridge broom brush bucket budget buffer bulb bundle butter cabin cabinet cable calendar camera canal candle \
canvas canyon carbon cargo carpet carriage castle catalogue cavern cedar ceiling cellar cement chain chair chamber \
channel chapel chart chimney chisel circuit cistern clay clerk cliff clinic clock cloth cloud coal coast coin collar \
column comet compass concert copper corner cottage cotton counter courtyard cradle crane crate creek crop crowd \
crystal cupboard current curtain cushion customs cylinder dairy dam dance dawn deck delta depot desert desk diagram \
diary dictionary dinner dish distance ditch dock document donkey door drain drawer drill driver drum dust dynamo \
eagle echo eclipse editor elbow elevator ember engine envelope equation errand estate evening exhibit experiment \
fabric factory falcon farm feather fence ferry festival fiddle field filter fire flag flame flask fleet flood floor \
flour flute fog forest forge fork formula fortress fossil foundry fountain frame freight frost fuel funnel furnace \
gallery garage garden gate gauge generator geyser glacier glass globe glove goat grain granite grass gravel greenhouse \
grid grove guide guitar gulf hall hammer hammock handle harbour harness harvest hatch hedge helmet herald herd highway \
hill hinge hive horizon horn horse hospital hotel hour house hull hurricane index ink inlet insect inspector \
instrument invoice iron island ivory jacket jar jetty jewel journal judge juice jungle kettle keyboard kiln kitchen \
kite knot label laboratory labourer ladder lagoon lake lamp lantern lathe lattice laundry lawn layer leaf leather \
ledger lemon lens letter lever library lighthouse lime linen lizard locker locomotive log loom lorry lumber machine \
magnet mailbox manual manuscript map marble margin market marsh mast mattress meadow measure medal melody merchant \
meter microscope mill mineral mirror mist model module moment monastery monument moon morning mortar mosaic motor \
mountain museum mushroom music needle neighbour nest net newspaper notebook nozzle oak oar oasis observatory ocean \
office olive onion orchard orchestra ore organ outpost oven owl oyster paddle page paint palace panel paper parcel \
park passage pasture path pavement pear pebble pendulum pepper pier pigeon pillar pilot pine pipe piston planet \
plank plate platform plaza plough pocket poem pole pond portrait postcard pottery powder prairie prism propeller \
pulley pump puzzle quarry quarter quay quilt railway rain ranch receipt recipe record reef registry reservoir \
ribbon rice ridge ring river road robe rocket roof room root rope rudder rug ruler saddle sail salt sample sand \
satellite saucer sawmill scale scarf schedule school screen sculpture sea season sediment sensor shadow shed shelf \
shell shelter ship shore shovel shutter siding signal silo silver sketch slate sleeve slope smoke snow soap socket \
soil soup spade spark spindle spring squirrel stable stage stairway stamp station statue steam steel stone storm \
stove stream street string studio sugar suitcase summer summit surface survey swamp switch table tailor tank tavern \
telegram telescope temple tent terrace theatre theory thread threshold thunder ticket tide tile timber tower tractor \
trail tram treaty trench tunnel turbine turret twig umbrella valley valve vault vessel viaduct village vine violin \
volcano voyage waggon wall warehouse water waterfall wave weather wharf wheat wheel whistle willow winch window winter \
wire wood wool workshop wreck yard yarn zinc";

/// Words that describe a thing.
pub(super) const ADJECTIVES: &str = "\
abandoned abrupt abundant accurate ageing agile amber ample ancient anxious arid awkward bare barren bitter bleak \
blunt bold brief bright brisk brittle broad broken bronze busy calm careful careless cautious central cheap cheerful \
chilly circular civil clean clear clever coarse cold colourful common complex compact concrete conical content cool \
copious costly crimson crooked crowded cruel curious curved damp daring dark deep defective delicate dense dim distant \
double doubtful dry dull dusty eager early eastern elaborate elastic elegant empty enormous even exact expensive faded \
faint fair faithful familiar famous fancy fertile fierce final fine firm fixed flat flexible foggy foreign forgotten \
formal fragile frail free frequent fresh frozen full furious general gentle giant gloomy golden graceful gradual grand \
grateful green grey handsome hardy harsh heavy hidden hollow honest horizontal humble humid idle immense impatient \
independent industrial inland inner intact intense invisible jagged joint keen kind large late lazy lean level liberal \
light limited liquid little lively local lone long loose loud low loyal lucky magnetic major marble massive mature \
mechanical medieval mellow mild minor misty mobile modern modest moist moral muddy murky musical mute narrow native \
natural neat nervous neutral noble noisy northern notable oblique obscure obvious odd official old open orderly \
ordinary outer oval pale patient peaceful peculiar perfect permanent plain pleasant polished polite poor popular \
portable practical precious precise primitive private prompt proper proud public punctual pure quaint quick quiet \
random rapid rare raw ready real recent reckless regional regular reliable remote rich rigid ripe robust rough round \
royal rural rustic sacred safe salty scarce scattered secret secure separate serene severe shallow sharp shiny short \
shy silent silver simple single slender slight slim slow small smooth sober soft solar solemn solid sour southern \
spare special spiral splendid square stable stale stately steady steep sterile sticky stiff still stout straight \
strange strict strong stubborn sturdy subtle sudden suitable sunny superb swift tall tame tedious temporary tender \
thick thin thorough tidy tight tiny tired tough tranquil transparent tropical typical uneven unique unusual upper \
urban urgent useful usual vacant vague valuable vast velvet vertical vibrant violent visible vital vivid warm wary \
watchful weary western wet whole wide wild windy wise wooden worthy yellow young";

/// What somebody did to a thing, past tense.
pub(super) const VERBS: &str = "\
accepted acquired adjusted admired altered announced anchored approached arranged assembled assessed attached avoided \
balanced blocked boarded borrowed bought bound braced brought built buried calculated called captured carried carved \
caught checked chose cleaned cleared climbed closed coated collected combined compared completed concealed connected \
considered constructed consulted copied corrected counted covered crossed cut dammed decorated defended delayed \
delivered described designed destroyed detected determined discovered discussed dismantled displayed distributed \
divided donated drained drew dried drove emptied enclosed encountered enlarged entered erected escorted established \
estimated examined exchanged excavated expanded explained explored extended fastened filled filmed finished fitted \
fixed flattened followed forecast forgot founded framed fuelled gathered greased greeted guarded guided hammered \
handled hauled heated heard held hid hired identified ignored illuminated imitated imported improved included \
inherited inspected installed insulated insured introduced invented isolated joined judged kept labelled launched \
left lent levelled lifted lined listed loaded located locked lost lowered maintained managed marked measured melted \
mended mentioned met modelled modified moved named noticed numbered observed obtained occupied offered opened \
operated ordered organised outlined overtook owned packed painted passed patched photographed placed planned planted \
polished positioned praised preferred prepared preserved printed produced promised protected proved pulled purchased \
pushed raised reached rebuilt recalled received recognised recommended recorded recovered reduced regarded registered \
rejected released remembered removed renamed rented repaired replaced reported rescued reserved restored retained \
returned reviewed rewarded ruined sailed saved scattered sealed searched secured selected sent separated served set \
settled shaped shared sheltered shipped showed sketched smoothed sold sorted spared spotted stacked stored stretched \
studied supplied supported surrounded surveyed suspected swept tested tightened towed traced traded trained \
transferred translated transported treated trimmed turned twisted unloaded untied unveiled used valued visited warmed \
warned washed watched watered weighed widened wrapped wrote";

/// How, when, how often.
pub(super) const ADVERBS: &str = "\
abruptly accidentally accurately afterwards again almost always anxiously barely bitterly boldly briefly brightly \
busily calmly carefully cautiously certainly cheaply cheerfully clearly closely constantly curiously daily deeply \
deliberately directly discreetly eagerly early easily elsewhere entirely eventually evenly exactly finally firmly \
frankly frequently freshly fully gently gladly gradually happily hardly hastily hourly idly immediately initially \
instantly jointly justly keenly kindly largely lately lazily lightly locally loosely loudly loyally mainly merely \
merrily mildly monthly mostly naturally nearly neatly nervously never nightly noisily normally officially often \
openly originally partly patiently perfectly plainly politely possibly precisely presently privately promptly \
properly proudly publicly quickly quietly randomly rapidly rarely readily really recently regularly reluctantly \
repeatedly roughly sadly safely scarcely secretly seldom separately sharply silently simply skilfully slowly smoothly \
softly solemnly sometimes soon steadily sternly strictly suddenly surely swiftly temporarily thoroughly tightly \
twice typically unexpectedly unusually usually vaguely visibly warmly wearily weekly widely willingly wisely yearly";

/// People who act.
pub(super) const NAMES: &str = "\
Abigail Adela Agnes Albert Alfred Alice Alma Ambrose Amelia Anders Anselm Arthur Astrid August Aurora Barnaby Basil \
Beatrice Benedict Bertha Boris Bridget Bruno Camilla Caspar Cecilia Clara Claude Clement Conrad Cora Cornelia Cosmo \
Cyril Dagmar Daphne Desmond Dinah Dominic Dorothea Duncan Edgar Edith Edmund Eleanor Elias Elmer Elsa Emil Enid Ernest \
Esther Ethel Eugene Evelyn Fabian Felicity Felix Flora Florian Frances Gareth Gemma Gerald Gertrude Gilbert Gideon \
Greta Gustav Hannah Harold Harriet Hector Hedwig Helga Henrik Hester Hilda Horace Hugo Ida Ignatius Imogen Ingrid \
Irene Isidor Ivan Ivy Jasper Joachim Johanna Josephine Jules Julian Juno Kasimir Katrin Klaus Lambert Laura Leander \
Leonora Leopold Lionel Livia Lorenz Louisa Lucian Ludwig Lydia Mabel Magnus Malcolm Marcus Margot Marina Martha Matilda \
Maurice Maximilian Mildred Minerva Miriam Mortimer Muriel Nadia Nathan Nellie Nigel Nora Octavia Odette Olaf Oliver \
Olympia Orson Oscar Oswald Ottilie Percival Petra Philippa Phoebe Quentin Rachel Ragnar Ralph Raymond Regina Rhoda \
Roland Rosalind Rufus Rupert Sabina Salome Samson Selma Septimus Sibyl Sigrid Silas Simon Solveig Stella Sylvester \
Tabitha Tessa Thaddeus Theodora Tobias Ulrich Una Ursula Valentin Vera Victor Vincent Viola Walter Wanda Wilfred \
Winifred Yolanda Yvonne Zelda";

/// Towns and countries that don't exist.
pub(super) const PLACES: &str = "\
Aldermere Amberford Ashholm Averland Barrowdale Beckwith Belmora Birchwater Blackmoor Bramford Brightsea Brindlewick \
Calderon Carrowmere Castlebeck Cinderhill Coldharbour Copperfell Cragmouth Dalewick Dernholt Dovermoor Dunmarrow \
Eastvale Ebonford Eldermouth Elmstead Fairhaven Farrowgate Fernhollow Firthside Foxbridge Galeport Glenmarsh \
Goldenreach Greyholm Gullwick Halverton Harrowgate Hawksmoor Hazelbourne Heatherby Highcastle Holmewood Inverlade \
Ironvale Jasperton Juniperhill Kelderby Kestrelmoor Kingsmarsh Lakemouth Larkspur Lindenfeld Longmarsh Lowenthal \
Maplecross Marrowdene Meadowmere Millhaven Mistral Mossgate Netherby Newhallow Northmarch Oakenshaw Oldbridge \
Orrinford Otterbourne Palewater Pembrook Pinewick Quarrymouth Queensford Ravenholm Redcliff Ridgemoor Rooksway \
Rosenthal Rushwater Saltmarsh Sandhaven Severn Silverbeck Skelwith Southmere Stonebridge Summerfold Swanholm Tarnside \
Thistledown Thornbury Tidewater Umberfield Upperlade Valemont Vinterby Wallowmere Waverly Westerholm Whitcombe \
Wickenden Willowbank Winterbourne Wolfsdale Yarrowby Yewbarrow Zephyrhill";

/// Words that open a sentence about a time.
pub(super) const TIMES: &str = "\
autumn breakfast dawn daybreak dinner dusk evening harvest lunchtime midday midnight midsummer midwinter \
moonrise nightfall noon springtime summer sunrise sunset supper teatime twilight winter";

/// Words that join two things in space.
pub(super) const PREPOSITIONS: &str = "\
above across against along among around behind below beneath beside between beyond by inside near opposite outside \
over past through toward under upon within";
