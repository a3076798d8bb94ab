//! What the requests ask about their document.

/// Questions that ask for long answers. All are of about one length, so that they hardly move the prompt's token count.
const QUESTIONS: [&str; 16] = [
    "Retell these notes as the first chapters of a long novel, scene by scene, and leave nothing out.",
    "Write a detailed history of the places in these notes, from their founding to the present day.",
    "Explain at length, person by person, what each one in these notes did and what moved them to it.",
    "Turn these notes into a stage play with many scenes, full dialogue and directions for the actors.",
    "Write a long travel guide to all the places in these notes, with what to see and whom to meet.",
    "Draw up an inventory of the things in these notes, and tell in detail where each came from.",
    "Write the diary of one person in these notes, day by day, for a whole year, in full sentences.",
    "Compose a long series of letters between two people in these notes about all that happened there.",
    "Write an encyclopaedia with a long entry for every person, place and thing in these notes.",
    "Describe each scene in these notes as a painting, and explain at length how one would paint it.",
    "Write a thorough report to a council on the events in these notes, with causes and remedies.",
    "Continue these notes in the same manner for many more pages, with new people and new places.",
    "Prepare a long lecture on daily life in these notes, with many examples and careful arguments.",
    "Write an investigation into the oddest event in these notes, with every clue and every witness.",
    "Rewrite these notes as a long saga in old-fashioned prose, and name every hero and every deed.",
    "Discuss in a long essay which events in these notes belong together, and argue for your view.",
];

/// The question of the request with this number, and a mark of its own before it.
pub(super) fn question(number: u64) -> String {
    let text = QUESTIONS[(number % QUESTIONS.len() as u64) as usize];
    format!(" Task {:08x}: {text}", number >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_of_about_one_length() {
        let lengths = QUESTIONS.map(str::len);
        assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 12, "{lengths:?}");
    }
}
